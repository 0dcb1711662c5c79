"""Make `docs/language.md` from grammar and diagnostics: `python -m hapax.grammar.writing.language_page`."""

from __future__ import annotations

import sys

from hapax.grammar.checking.code_explanations import explained_codes
from hapax.grammar.goals import AGGREGATES, BUILT_INS

_TOUR = """# The rule language

<!-- Made by `python -m hapax.grammar.writing.language_page`; change grammar/writing/language_page.py, rule.lark,
hints.py or the checks. -->

A rule file is UTF-8 text. `#`, `%` and `/* */` are comments; `%` between a number or variable and a number is an
operator. A statement ends at the end of its line or at a full stop; it continues on the next line inside parentheses,
after an operator and before one. Rules and goals have one notation.

Facts and rules are a program, and nothing need be declared:

```
parent(ann, bob).  parent(bob, "Carol King").
parent(X, Y) -> ancestor(X, Y)
ancestor(X, Z) :- parent(X, Y), ancestor(Y, Z).
```

Types, kinds and sentences are for searches, which ask models and write statements, and for what `check` should find:

```
type Food Allergen < Object                     # a subtype; Year and Age are built-in subtypes of Number
type Height < Number
oracle is_ingredient_in(Ingredient, Dish): "[1] is an ingredient in [2]" / "[1] is not an ingredient in [2]"
functional was_invented_in(Invention, Year): "[1] was invented in [2]"        # a single right last argument
functional has_height(Mountain, Height) within 2%: "[1] is [2] metres high"   # two answers agree within 2 percent
computed is_earlier_than(Year A, Year B) := A < B                             # arithmetic; no model is asked
given was_born_in(Person, Year)                                               # your facts; no model is asked
given trip(id: Trip, air_time: Minutes, distance: Miles)                      # the same, with names of the columns
derived is_fast(Trip)                                                         # what rules conclude
aggregate births(Year A, Number K) := K = count(Person X: was_born_in(Person X, Year A))
opposite can_plant cannot_plant
symmetric shares_a_border_with/2                # also: asymmetric, irreflexive, transitive
closed has_official_language/2 by 1             # complete for each country of which a language is known
disjoint Food Allergen, Person                  # no value is of both types
never died_in(Historical Figure X, Year A) & was_born_in(Historical Figure X, Year B) & A < B
fact was_born_in("Ada", 1815)
@example is_ingredient_in("rice", "paella")     # for prompts of the profile few-shot; never a fact

@name allergy
@domain "outcomes and effects"
is_allergic_to(Person X, Food Allergen A) & is_ingredient_in(Ingredient Z, Dish B)
  & is_one_type_of(Ingredient Z, Food Allergen A) -> is_not_able_to_eat(Person X, Dish B)

cannot_use(Person X, Invention I) :- was_born_in(Person X, Year A), was_invented_in(I, Year B), A + 100 < B
  unless is_rebuilt(I, Year C) & A < C          # an exception
```

## Rules

- A rule is `premise -> conclusion` or `conclusion :- premise`, and a fact is an atom without variables, before which
  `fact` may be written. `&` and `,` are *and*, `|` and `;` are *or*, which binds less; parentheses group. The arrow may
  also be `=>`, `→`, `⇒` or `\\to`, *and* `and`, `∧` or `\\land`, *or* `or`, `∨` or `\\lor`.
- A rule with *or* stands for a rule of each alternative; these are named `far_1`, `far_2`, and proofs name them.
- `not p(...)`, also written `\\+`, `¬` or `~`, holds if `p(...)` is false, see [negation](#declarations-and-negation).
  `not (A & B)` holds if no values of the variables that it has alone make `A & B` true. A conclusion cannot be negated.
- An argument is a variable, which begins with a capital letter or `_`, or a value: a number, a text in single or in
  double quotes, or a word that begins otherwise. A variable may have its type before it (`Food Allergen A`).
  Without one it has that of its predicate's declaration, else any. `_` is a new variable at each place, also in
  `not p(X, _)`.
- `given trip(id: Trip, air_time: Minutes) key id` has one row for each id: `import` refuses another one, and `check`
  finds it. A key may have several columns: `key id, day`. Outside of the key a row may have empty cells. `_` matches
  one, and a variable does not: `trip(id: I, air_time: T) & is_missing(T)` is about rows without an air time.
- A predicate may have no arguments: `raining`, or `raining()`. Rules and rule files state it.
- `trip(id: I, air_time: T)` names the columns that a declaration has; the others are `_`.
- `p(1..3; 7).` states four facts, and `X = 1..N` gives X each whole number from 1 to N. A calculation may be an
  argument: `p(X + 1)`. `true` and `false` (or `fail`) are items of a premise.
- `X in (a, b)` is `(X = a | X = b)`. `member(X, [a, b])`, `between(1, N, X)`, `forall(p(X), q(X))` and
  `aggregate_all(count, p(X), N)` of Prolog, `:- p(X), q(X)` for `never`, `#const n = 3.` of clingo, `?x` of Nemo and
  `//` before a comment are read, too. A rule has `not (p(X) & X < 3)` for `forall(p(X), X >= 3)`.
- Upper and lower case make no difference in data types. A variable has the most specific of its types. Every type but
  Person and its subtypes is a subtype of Object.
- The comparisons are `<`, `=<`, `>`, `>=`, `=` and `\\=`, over [expressions](#expressions), and of several at once from
  the left: `(A, B) < (C, D)`. An equation
  `V = expression` gives a new variable its value and its type: `V = A + B`.
- `0.3::p(a).` and `0.4::q(X); 0.6::r(X) :- p(X).` hold with
  [probabilities](how-to/probabilities.md#rules-with-probabilities).
- The escapes in quoted texts are `\\"`, `\\\\`, `\\n`, `\\t` and `\\u{hexadecimal}`.
- Blanks beside `_` in a predicate's name are ignored, because LINK prints them.

A functional predicate is asked twice, and its value is believed if both answers are equal. `within 2` permits a
difference of 2, and `within 5%` one of 5 percent of the larger; then the first answer is taken.

## Expressions

```
given trip(Trip, Minutes, Miles, Date)
type Minutes < Number
type Miles < Number
trip(T, M, L, D) & V = L / M * 60 & V > 500 & month(D) = 12 & D < "2013-12-25" -> is_fast(T, V)
```

| operation or function | value |
|---|---|
| `A + B`, `A - B`, `A * B`, `A / B` | exact: a third stays a third |
| `A // B`, `A mod B` | the quotient without its decimals, and the remainder with the sign of `B`, as in Prolog |
| `A ** B` | the power; `B` is a whole number from -1000 to 1000 |
| `abs(A)`, `floor(A)`, `round(A)`, `round(A, 2)` | `round` goes away from zero where two are as near |
| `min(A, B)`, `max(A, B)` | the smallest and the largest of two or more |
| `lower(T)`, `upper(T)`, `length(T)`, `concat(S, ", ", T)` | `length` counts characters |
| `substring(T, 1, 3)`, `replace(T, " kg", "")` | the first three characters; each `" kg"` taken out |
| `number(T)` | the number that a text such as `"12.50"` states |
| `starts_with(T, "Nor")`, `ends_with(T, "way")`, `contains(T, "rw")` | tests, also `T contains "rw"` |
| `matches(T, "^[A-C]")` | a test: the regular expression is found in the text, within a second |
| `like(T, "A%b_")` | a test, as in SQL: `%` is any text, `_` one character |
| `year(D)`, `month(D)`, `day(D)`, `weekday(D)` | of a date or date-time; Monday is 1 |
| `hour(D)`, `minute(D)`, `second(D)`, `date(D)` | of a time or date-time, in its own zone; `date` of a date-time |
| `E - S`, `S + 30 days`, `days(E - S)` | durations; also `seconds`, `minutes`, `hours` and `weeks` |

- A test can be a premise of its own, also after `not`. Its value is the text `true` or `false`:
  `B = contains(T, "rw")` and `B = "true"` hold together. A predicate that the rules declare, state or conclude comes
  before a test of its name.
- Dates, times, date-times and durations are texts in ISO 8601: `"2012-12-01"`, `"08:30"`,
  `"2012-12-01T08:30:00+01:00"`, `"PT1H30M"`. The types `Date`, `Time`, `DateTime`, `Duration` and `Text` say so in a
  declaration. `30 days` is `"P30D"`. A point without a zone counts as UTC. `S + 30 days` is a date if `S` is one.
- `<` orders numbers, texts (by their characters) and moments. Two texts that both state moments are compared as such;
  `=` compares texts, so that two spellings of one instant are two.
- An expression has no value where it divides by zero, calculates with a text, or compares a number with a text, a date
  with another text. Such a row is no row of the premise.

A computed predicate without `:=` is decided by a Python function of its name:

```
computed is_close_to(Number A, Number B)
computed way_between(Number A, Number B, Number K)
```

`hapax.register_function(is_close_to, version="1")` registers a function before the rules are read; packages add theirs
by entry points of the group `hapax.functions`. One with an argument less than the predicate gives its last argument. It
must be pure: each value is asked for once. Where it raises an error, the row has no value. With another version what
follows is derived anew. Rules that come with a knowledge base, or as texts from elsewhere, call no function.

## Declarations and negation

`p/2` is the predicate `p` with two arguments.

| declaration | meaning |
|---|---|
| `symmetric p/2` | from `p(A, B)` follows `p(B, A)` |
| `transitive p/2` | from `p(A, B)` and `p(B, C)` follows `p(A, C)` |
| `irreflexive p/2` | `p(A, A)` is never true |
| `asymmetric p/2` | `p(A, B)` and `p(B, A)` are never true together, nor is `p(A, A)` |
| `disjoint T1, T2` | no text is of both types; types of a word each need no comma |
| `never A & B` | these premises never hold together; they may be comparisons and negations |
| `closed p/2` | every fact that is not known is false |
| `closed p/2 by 1` | so is every such fact about a first argument of which a fact is known |
| `given same_as(T, T)` | two names stand for one thing, see below |

`hapax derive`, `query` and `search` prove what follows by `symmetric` and `transitive`. A search asks about an oracle
predicate as the rule has it, and takes no further values from these declarations.

Facts that break one of the other declarations are a conflict. In a search the least sure fact of the smallest
conflicting set loses; facts that tie lose together, and given facts never lose. `hapax why-not` explains it, and
`hapax check --db FILE` lists the conflicts in a knowledge base. With `--compat`, conflicts are ignored, as in LINK.

Facts of `same_as/2`, and rules that conclude it, join names. Goals and rules then see one name of a country that has
several, the first in alphabetical order. Joins find it under each name, an aggregate counts it once, and it has one
value by a `functional` predicate. The proof shows the facts as they are written and why the names are the same.

```
given same_as(Country, Country)
same_as("Czechia", "Czech Republic").
has_code(Country A, Code X) & has_code(Country B, Code X) & A \\= B -> same_as(A, B)
```

- A goal `same_as("Czechia", X)` gives all names. In a rule's premise, `same_as` is equality.
- A rule that concludes `same_as` must not rest on a negation, an aggregate or a `\\=` of other names than its own:
  these depend on the names that it joins.
- It joins texts everywhere, but no numbers. Probabilities and compiled rules do without it: they are refused.

Whether `not p(...)` holds where `p(...)` cannot be proved depends on the predicate:

| predicate | `not p(...)` holds |
|---|---|
| given, derived by rules, or undeclared | if it cannot be proved |
| computed | if the comparison is false |
| oracle or functional, declared `closed` | if it cannot be proved; `by 1`: if its first argument has a fact, too |
| functional | if another value is known, or a critic denied it |
| oracle | if a critic denied it: P(yes) at most 1 less the threshold of truth, .15 by default |

A model's facts are never all there are, so that elsewhere an absent fact is unknown: no statement is made, and
`hapax why-not` names the unknown fact. A goal of `hapax query` is Prolog: its own `\\+` is failure to prove.

## Aggregates

An aggregate is a predicate that calculates over all that holds:

```
given is_in(Ingredient, Dish)
given has_price(Dish, Number)
aggregate dishes_with(Ingredient Z, Number K) := K = count(Dish D: is_in(Ingredient Z, Dish D))
aggregate cost(Ingredient Z, Number K) :=
  K = sum(Number P, Dish D: is_in(Ingredient Z, Dish D) & has_price(Dish D, Number P))
dishes_with(Ingredient Z, Number K) & cost(Ingredient Z, Number C) & C > 10 * K -> is_dear(Ingredient Z)
```

The atom has the result and the variables of the group; without the latter there is one group of everything. After the
colon is a premise like that of a rule, before it the counted variables. Each group has the distinct values of these,
together, as its rows: `count` (or `count distinct`) is their number, and `sum`, `min`, `max` and `avg` are over the
first variable of each row. So `sum(Number P: ...)` adds every price once, and `sum(Number P, Dish D: ...)` the price of
every dish. The premise's other variables only have to have some value.

`S = argmin(Shop S, Number P: sells(S, City C, P))` gives the first variable where the second is smallest; where several
shops are cheapest there is an atom for each. `min`, `max`, `argmin` and `argmax` also compare texts and dates, but a
text among numbers that are declared has no value, and no sum.

A rule may have an aggregate of its own: `N = count : { p(X, Y) }` and `S = sum P : { p(X, P) }` as in Soufflé, over all
rows, or `N = #count{ Y : p(X, Y) }` as in clingo. Its groups are the variables that the rule has elsewhere, too, and
there a count or sum of no rows is 0.

The premise may have several cases, joined by `|`. With `min`, `max` and `sum` a case may have atoms of the aggregate:

```
aggregate distance(Place A, Place B, Number K) :=
  K = min(Number N: road(A, B, N) | distance(A, Place C, Number L) & road(C, B, Number M) & N = L + M)
aggregate total(Thing A, Thing B, Number K) :=
  K = sum(Number N: part(A, B, N) | part(A, Thing C, Number M) & total(C, B, Number L) & N = M * L)
```

- A smallest or largest value must grow with the one it rests on, which `check` sees to: `L + M`, `L - M`, `min(L, M)`,
  `L * M` with the premise `M >= 0`, and of `min` only conditions such as `L < 100`. A value that improves for ever, as
  along a cycle of negative numbers, ends with an error.
- Such a sum, and one of several cases, adds each derivation: two paths of the same amount count twice. Something that
  is a part of itself has no sum, which is an error when it is derived.
- A group without rows has no value: there is no count of 0. `not is_in(...)` says that there is none.
- Numbers are exact, averages of thirds included.
- An aggregate may use other aggregates, negation and derived predicates, but not depend on itself in another way.
- Its premise needs all facts of its predicates: an oracle predicate without `closed` is an error. A search asks no
  model for it.
- A proof of the atom has the proofs of all rows of the group; of a smallest or largest value of cases, one row.
- There are no probabilities of what rests on aggregates.

## Defaults and exceptions

`unless` excepts cases from a rule, which is then a default:

```
is_bird(Animal X) & weighs(Animal X, Number K) -> can_fly(Animal X)
  unless is_penguin(Animal X)
  unless has_illness(Animal X, Illness I) & is_serious(Illness I)
  unless K > 15
```

The rule concludes nothing where one of its exceptions holds. An exception is a premise, shares at least one variable
with the rule, and may have variables of its own: any illness that is serious excepts X.

- An unknown fact is not an exception. `not p(...)` of an open predicate needs to know that `p(...)` is false; `unless`
  only needs that nothing shows it. So a default can be overturned by a later fact: `derive` then withdraws what rests
  on it, and `why-not` says which exception applies.
- A search asks no model about exceptions. It uses the facts that are given or that other questions found, and
  `query --ask` asks for those that its goal needs.
- A predicate that depends on an exception to itself is an error, as with negation.

## Imports

```
import "food.rules"
import "world/places.rules" as world
```

The imported file is read as if it were named beside the importing one, and once, so files may import each other. Its
path is relative to the folder of the importing file. A knowledge base that keeps rules keeps imported files, too.

With `as world`, the names of its predicates and rules get this ending: `is_in` of `places.rules` is `is_in_world` here.
Data types and sentences stay as they are.

## Attributes

Attributes come before their rule.

| attribute | value | default |
|---|---|---|
| `@name` | the rule's name | `rule1`, `rule2` ... by position |
| `@domain` | any words | none |
| `@polarity` | `positive` or `negative` | negative if the conclusion's name denies (`cannot_`, `has_no_` ...) |
| `@principle` | `compatibility` or `exclusion` | exclusion if the polarity is negative |
| `@generic` | variables (`X Y`) or `none` | see below |
| `@most` | a number, `per` and variables: `2 per A B` | no cap |
| `@withdrawn` | the reason, in quotation marks | the rule is searched |

`@most 2 per A B` keeps at most two statements with the same value of `A`, and two with the same value of `B`, at each
end of a search, so that one war does not fill the list. A rule that is `@withdrawn` is only searched when it is named
(`--rule`).

The generic variables are those that a statement speaks about; a search does not bind them. By default they are the
persons that premise and conclusion share, else the first argument of the premise, if the conclusion mentions it. A rule
over facts has none: no model is asked for a predicate of its premise, and what it says of a person has no template or
is stated in the files. `hapax plan` shows them with the reason.

## Templates

A declaration may have up to three sentences after `:`, separated by `/`: affirmative, negated and question. `[1]` is
the first argument. A missing form is made from the affirmative one. A predicate without any is worded by its name, such
as `ann is a parent of bob` by `is_parent_of`; by a name that is no verb, such as `parent`, as the atom.
"""

_PEERS = """## Beside other languages

Beside Soufflé, clingo, ProbLog, Logica and Nemo:

| construct | here | also in |
|---|---|---|
| recursion, negation, `or`, aggregates | as above | all of them |
| ranges, pools, collections | `X = 1..N`, `p(a; b).`, `N = count : { p(X) }` | clingo, Soufflé without pools |
| members, conditions of Prolog, constraints, constants | `X in (a, b)`, `:- p(X)`, `#const n = 3.` | clingo, Prolog |
| exact fractions | every number | none: they have floats or integers |
| `mod`, `//`, `**`, `abs`, `min`, `max` | [expressions](#expressions) | all of them, clingo for integers |
| functions and order of texts | `starts_with(C, "Nor")`, `C < "M"` | Soufflé, Logica, Nemo |
| dates, times, durations | `S + 30 days`, `year(S)` | Nemo in part |
| the row with the best value | `argmin`, `argmax` | Logica |
| recursive smallest and largest values | `min` with a case of its own | Soufflé, Logica, Nemo in part |
| sums over the paths of a graph without cycles | `sum` with a case of its own | Logica |
| functions of one's own | `computed is_close_to(A, B)` | Soufflé, clingo, ProbLog, Logica |
| names of one thing | `same_as(A, B)` | Soufflé by `eqrel` for one relation |
| what facts forbid each other | `functional`, `disjoint`, `never`, opposites | clingo |
| probabilities | `0.4::q(X); 0.6::r(X) :- p(X).`, `evidence(q(a))` | ProbLog |
| proofs, reasons why not, withdrawal | of every answer | Soufflé has proofs |

Rules leave out, each for a reason:

- terms with arguments, lists and records: what rules conclude stays finite; goals have Prolog's lists;
- a choice of conclusions, new individuals in conclusions, optimisation over sets: a base is one set of facts, and each
  of them has a proof;
- bit operations: a Python function has them.

Programs of these constructs are in `tests/programs/`, with what clingo, SWI-Prolog, DuckDB or ProbLog concludes.
"""

_GOALS = """## Goals

A goal is written like the premise of a rule, and may be any Prolog goal of the predicates below. A predicate whose name
begins with a capital letter is quoted before its bracket, as in `'Reach'(X, Y)`. A variable that occurs once and is
spelt like a stored value is noted: `plays_at(Ajax, S)` asks for everybody, `plays_at('Ajax', S)` for one club. A rule
file may ask goals, `?- ancestor(ann, X).`, which `hapax query FILE` answers. A goal
may call the predicates of the rule files and these:

{built_ins}.

`C -> T ; E` is T for the first answer of C, and E if there is none; `once(G)` is the first answer of G.

A predicate, and a disjunction `A ; B`, has each answer once, however many facts and rules give it: `findall/3`,
`bagof/3`, `setof/3` and `aggregate_all/3` collect answers, not proofs.

`aggregate_all/3` computes `count`, {aggregates}. Nothing else can be called.

Expressions and tests are those of rules, `**` with a written exponent from 0 to 1000. Arithmetic is exact. In a
goal for Prolog, arithmetic on a text or a variable without a value, and a division by zero, are errors.
"""

_GRAMMAR = """## Grammar

The grammar of rule files and goals is [grammar/parsing/rule.lark](../grammar/parsing/rule.lark), in the notation of
[Lark](https://lark-parser.readthedocs.io/).
"""

_DIAGNOSTICS = """## Diagnostics

Each fault has a code. `hapax rules explain HPX105` prints its meaning, an example and the example corrected.

A file that cannot be read (`HPX0..`) is refused as a whole, like one with an error in a type, a fact or another
declaration. A rule or aggregate with an error is left out, with whatever needs its conclusion, and goals about these
are refused. Warnings and notes prevent nothing.

`HPX0..` are found when rules and goals are read, of all files together, at most fifty a file. `hapax check` finds
`HPX1..` to `HPX3..`, `hapax check --db FILE` `HPX4..`, and `hapax rules lint -m MODEL` `HPX5..`: a model's opinion, not
a proof. A fault is an error unless the table says otherwise.

| code | fault |
|---|---|
"""


def language_page() -> str:
    """The Markdown text of the page."""
    goals = _GOALS.format(
        built_ins=", ".join(f"`{name}`" for name in BUILT_INS),
        aggregates=", ".join(f"`{name}`" for name in AGGREGATES),
    )
    rows = []
    for entry in explained_codes().values():
        severity = "" if entry.severity == "error" else f" ({entry.severity})"
        rows.append(f"| {entry.code} | {entry.name}{severity} |\n")
    return "\n".join([_TOUR, _PEERS, goals, _GRAMMAR, _DIAGNOSTICS + "".join(rows)])


if __name__ == "__main__":
    sys.stdout.write(language_page())
