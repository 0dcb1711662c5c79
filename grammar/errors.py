"""Faults and how they are told: the base of all expected errors, and diagnostics with place, fact and remedy."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # rules.py raises HapaxError, so the import can go one way only
    from grammar.rules import Place


class HapaxError(Exception):
    """Base of every error a user can cause. The message names the place, the fact and the remedy."""


class Severity(StrEnum):
    """Errors stop the rules from being used; warnings and notes do not."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One fault of a rule file. `related` are other places that take part, such as the first of two clashing lines."""

    code: str
    severity: Severity
    place: Place
    message: str
    remedy: str
    related: tuple[Place, ...] = ()

    def __str__(self) -> str:
        also = f" (see also {', '.join(map(str, self.related))})" if self.related else ""
        return f"{self.place}: {self.severity} {self.code}: {self.told}{also}"

    @property
    def told(self) -> str:
        """The fault and its remedy, without place and code."""
        return f"{_sentence(self.message)} {_sentence(self.remedy)}".rstrip()


class RulesRejected(HapaxError):  # noqa: N818 - reads as what happened
    """Rules that cannot be used; `diagnostics` holds every fault found, errors or not."""

    def __init__(self, diagnostics: Iterable[Diagnostic]) -> None:
        self.diagnostics = tuple(diagnostics)
        super().__init__("\n".join(map(str, self.diagnostics)))


class GoalRejected(RulesRejected):
    """A goal or an atom that cannot be asked of the rules, which are sound."""


def _sentence(words: str) -> str:
    words = words.strip()
    return words if not words or words.endswith((".", "!", "?")) else words + "."


@dataclass(frozen=True, slots=True)
class Hint:
    """A fault the parser can name. `{...}` in the message is filled in; each example is malformed in just this way."""

    label: str
    code: str
    message: str
    remedy: str
    examples: tuple[str, ...]

    def at(self, place: Place, **words: str) -> Diagnostic:
        return Diagnostic(self.code, Severity.ERROR, place, self.message.format(**words), self.remedy.format(**words))


SYNTAX_HINTS: tuple[Hint, ...] = (
    Hint(
        "comma between premises",
        "HPX002",
        'literals of a premise before "->" are joined by ","',
        'Use "&", or write the rule as "conclusion :- premise, premise".',
        (
            "p(T X, T Y), q(T Y, T Z) -> r(T X, T Z)",
            "p(T X, T Y) & q(T Y, T Z), s(T X, T Z) -> r(T X, T Z)",
            "p(T X, T Y) & X < Y, q(T Y, T Z) -> r(T X, T Z)",
            "X < Y, q(T Y, T Z) -> r(T X, T Z)",
        ),
    ),
    Hint(
        "no operator between literals",
        "HPX003",
        "two literals stand side by side",
        'Join them with "&".',
        (
            "p(T X, T Y) q(T Y, T Z) -> r(T X, T Z)",
            "p(T X, T Y) & q(T Y, T Z) s(T X) -> r(T X, T Z)",
            "r(T X) :- p(T X, T Y) q(T Y)",
            "r(T X) :- p(T X, T Y), q(T X) q(T Y)",
        ),
    ),
    Hint(
        "no conclusion",
        "HPX004",
        "the rule stops without a conclusion",
        'Write "premise -> conclusion", with one atom after the arrow.',
        ("p(T X, T Y) & q(T Y, T Z)", "p(T X, T Y)", "p(T X, T Y) ->", "X < 3", "p(T X) & X < 3"),
    ),
    Hint(
        "several conclusions",
        "HPX005",
        "the rule has more than one conclusion",
        "Write one rule for each conclusion.",
        ("p(T X, T Y) -> q(T X) & r(T Y)", "p(T X, T Y) -> q(T X), r(T Y)", "p(T X) -> q(T X) -> r(T X)"),
    ),
    Hint(
        "two arrows",
        "HPX006",
        'the rule has both ":-" and "->", or ":-" in the wrong place',
        'Write either "premise -> conclusion" or "conclusion :- premise".',
        (
            "r(T X) :- p(T X, T Y) -> q(T Y)",
            "p(T X) & q(T X) :- r(T X)",
            "p(T X) -> q(T X) :- r(T X)",
            "r(T X) :- q(T X) :- p(T X)",
        ),
    ),
    Hint(
        "negated conclusion",
        "HPX007",
        "a conclusion cannot be negated",
        'Conclude the opposite predicate ("cannot_plant") and declare the pair with "opposite can_plant cannot_plant".',
        ("p(T X, T Y) -> not q(T X, T Y)", "not q(T X) :- p(T X)", "r(T X) & p(T X) -> \\+ q(T X)"),
    ),
    Hint(
        "comparison as conclusion",
        "HPX008",
        "the conclusion must be an atom, not a comparison or a value",
        'Conclude a predicate; for arithmetic declare one: "computed is_older_than(Age A, Age B) := A > B".',
        ("p(T X, T Y) -> X < Y", "p(T X, T Y) -> X = Y", "p(T X) -> 3", 'p(T X) -> "yes"', "p(T X) -> (X < 3)"),
    ),
    Hint(
        "empty premise",
        "HPX009",
        "a rule needs a premise",
        'Write a literal on both sides of the arrow; a thing that always holds is a "fact".',
        ("-> p(T X)", "p(T X) :-", ":- p(T X)"),
    ),
    Hint(
        "literal missing",
        "HPX010",
        'a literal is missing beside "&" or ","',
        'Take the extra "&" or "," out, or write the literal.',
        (
            "p(T X) & -> q(T X)",
            "p(T X) & & r(T X) -> q(T X)",
            "& p(T X) -> q(T X)",
            "q(T X) :- p(T X),",
            "q(T X) :- p(T X), , r(T X)",
            "p(T X) &",
            "q(T X) :- , p(T X)",
            "q(T X) :- & p(T X)",
        ),
    ),
    Hint(
        "disjunction",
        "HPX011",
        'a rule cannot say "or"',
        "Write one rule for each alternative.",
        (
            "p(T X) | q(T X) -> r(T X)",
            "p(T X) ∨ q(T X) -> r(T X)",
            "r(T X) :- p(T X) ; q(T X)",
            "p(T X) & s(T X) | q(T X) -> r(T X)",
            "p(T X) ; q(T X) -> r(T X)",
            "p(T X) -> q(T X) | r(T X)",
        ),
    ),
    Hint(
        "unclosed parenthesis",
        "HPX012",
        'a "(" is not closed before the statement goes on or ends',
        'Close the argument list with ")".',
        (
            "p(T X & q(T X) -> r(T X)",
            "p(T X -> r(T X)",
            "p(T X) & q(T X & r(T X) -> s(T X)",
            "p(T X",
            "p(X & q(X) -> r(X)",
            "r(T X :- p(T X)",
            "p(T X) -> r(T X",
            "p(3 & q(T X) -> r(T X)",
            "p(T X, T Y & q(T Y, T Z) -> r(T X, T Z)",
            "p(T X, T Y -> r(T X, T Y)",
            "p(T X, T Y",
            "p(T X) -> r(T X, T Y",
            'p(T X) -> r(T X, "a"',
            "p(T X, 3 & q(T X) -> r(T X)",
            "p(T X) & (X < 3",
            "p(T X) & q(T X, T Y & r(T X) -> s(T X)",
        ),
    ),
    Hint(
        "extra parenthesis",
        "HPX013",
        'a ")" has no "(" before it',
        "Take it out.",
        ("p(T X)) -> q(T X)", "p(T X) & q(T X)) -> r(T X)", "p(T X) -> q(T X))", "q(T X) :- p(T X))"),
    ),
    Hint(
        "no arguments",
        "HPX014",
        "an argument is missing",
        'Write each argument as "Type X", "X", "quoted text" or a number, with commas between.',
        (
            "p() -> q(T X)",
            "p(T X,) -> q(T X)",
            "p(T X) -> q()",
            "p(, T X) -> q(T X)",
            "p(T X, , T Y) -> q(T X)",
            "p(T X) -> q(T X,)",
            "p(T X,",
            "p(",
        ),
    ),
    Hint(
        "nested atom",
        "HPX015",
        "an argument is itself a term with arguments",
        "Arguments are variables, quoted texts or numbers; say the inner thing with a literal of its own.",
        ("p(f(T X), T Y) -> q(T X)", "p(T X, f(T Y)) -> q(T X)", "p(T X) -> q(f(T X))"),
    ),
    Hint(
        "expression as argument",
        "HPX016",
        "an argument is an expression",
        'Name the value with a variable of its own and add "& V = A + 1" to the premise.',
        (
            "p(T X + 1, T Y) -> q(T X)",
            "p(T X) & q(X - 1) -> r(T X)",
            "p(T X, X * 2) -> q(T X)",
            "p(T X / 2) -> q(T X)",
            "p(T X) -> q(X + 1)",
            "p(3 + 4) -> q(T X)",
            "p(T X, X < 3) -> q(T X)",
        ),
    ),
    Hint(
        "unclosed quote",
        "HPX017",
        "a quoted text is not closed on its line",
        'Close it with ", and write a quote inside it as \\".',
        (
            'p(T X, "butter) -> q(T X)',
            'oracle p(A, B): "[1] is in [2]',
            '@domain "outcomes',
            'p("butter) -> q(T X)',
            'p(T X) & X = "butter -> q(T X)',
            'oracle p(A, B): "[1] is in [2]" / "[1] is not',
            '@name a "b',
        ),
    ),
    Hint(
        "foreign quote",
        "HPX018",
        "the quotation mark is not the straight one",
        'Quote texts with ".',
        (
            "p(T X, “butter”) -> q(T X)",
            "p(T X, 'butter') -> q(T X)",
            "p(“butter”, T X) -> q(T X)",
            "oracle p(A, B): “[1] is in [2]”",
            "oracle p(A, B): '[1] is in [2]'",
            "@domain 'outcomes'",
            "@name “a”",
            "p(T X) & X = 'b' -> q(T X)",
            "p('butter', T X) -> q(T X)",
        ),
    ),
    Hint(
        "faulty subtype",
        "HPX019",
        "a subtype line has another form",
        'Write "type Food Allergen < Object".',
        (
            "type Vehicle",
            "type Vehicle < ",
            "type Vehicle : Object",
            "type < Object",
            "type Vehicle > Object",
            "type Vehicle < Object < Thing",
            "type Vehicle, Car < Object",
            "type Vehicle = Object",
            'type "Vehicle" < Object',
            "type Vehicle < Object, Thing",
        ),
    ),
    Hint(
        "faulty declaration",
        "HPX020",
        "a declaration has another form",
        'Write "oracle is_in(Ingredient, Dish): "[1] is in [2]" / "[1] is not in [2]" / "is [1] in [2]?"", templates '
        'after ":" and "/" between them.',
        (
            "oracle is_in",
            "given born",
            "functional born",
            "oracle is_in Ingredient, Dish)",
            'oracle "is_in"(Ingredient, Dish)',
            'given "born"(Person)',
            'functional "born"(Person, Year)',
            'oracle p(A, B) "[1] is in [2]"',
            "oracle p(A, B):",
            "oracle p(A, B): [1]",
            'oracle p(A, B): "a" "b"',
            'oracle p(A, B): "a" /',
            "functional p(A, B) -> q(A)",
            "oracle p(A, B) & q(A)",
            'oracle p(A, B): "a", "b"',
            'oracle p(A, B): "a" & "b"',
            'oracle p(A, B) / "a"',
            "oracle p(A, B): is_in",
            "given p(A, B) := A < B",
            "oracle p(A, B), q(A, B)",
        ),
    ),
    Hint(
        "faulty computed predicate",
        "HPX021",
        "a computed predicate lacks its comparison",
        'Write "computed is_earlier_than(Year A, Year B) := A < B".',
        (
            "computed p(Year A, Year B)",
            "computed p(Year A, Year B) :=",
            "computed p(Year A, Year B) := A",
            "computed p(Year A, Year B) := q(A, B)",
            'computed p(Year A, Year B): "[1] is before [2]"',
            "computed p",
            "computed p(Year A, Year B) :- A < B",
            "computed p(Year A, Year B) := A + B",
            "computed p(Year A) := A < 3 & A > 1",
            "computed p(Year A, Year B) = A < B",
            "computed p(Year A) := A < 3, A > 1",
            "computed p(Year A) := not A < 3",
        ),
    ),
    Hint(
        "faulty opposite",
        "HPX022",
        "an opposite line has another form",
        'Write the two names alone: "opposite can_plant cannot_plant".',
        (
            "opposite can_plant",
            "opposite can_plant, cannot_plant",
            "opposite can_plant / cannot_plant",
            "opposite a b c",
            "opposite can_plant(A) cannot_plant(A)",
            "opposite a & b",
            'opposite "a" "b"',
            "opposite can_plant -> cannot_plant",
        ),
    ),
    Hint(
        "faulty fact",
        "HPX023",
        "a fact is one atom",
        'Write "fact was_born_in("Ada", 1815)"; what holds under conditions is a rule.',
        (
            'fact p("a") & q("a")',
            'fact p("a"), q("a")',
            'fact p("a") -> q("a")',
            'fact not p("a")',
            "fact p",
            'fact p("a") :- q("a")',
            'fact "a"',
            "fact 3",
        ),
    ),
    Hint(
        "faulty attribute",
        "HPX024",
        "an attribute line holds more than words",
        'End the line after the value; quote it if it holds signs: @domain "outcomes & effects".',
        (
            "@name allergy p(T X) -> q(T X)",
            "@domain outcomes & effects",
            "@name a/b",
            "@name = a",
            "@name: a",
            "@name a:b",
        ),
    ),
    Hint(
        "chained comparison",
        "HPX025",
        "comparisons are chained",
        'Write two: "A < B & B < C".',
        (
            "p(T X) & A < B < C -> q(T X)",
            "A < B < C -> q(T X)",
            "p(T X) & A = B = C -> q(T X)",
            "A = B = C -> q(T X)",
            "computed p(Year A, Year B) := A < B < 3",
            "p(T X) & A < B = C -> q(T X)",
        ),
    ),
    Hint(
        "operand missing",
        "HPX026",
        "a comparison or sum lacks a value on one side",
        "Write a variable, a number or a quoted text on both sides.",
        (
            "p(T X) & X < -> q(T X)",
            "p(T X) & < 3 -> q(T X)",
            "p(T X) & X + < 3 -> q(T X)",
            "p(T X) & X < 3 + -> q(T X)",
            "X < & p(T X) -> q(T X)",
            "p(T X) & X * < 3 -> q(T X)",
            "p(T X) & X < <  3 -> q(T X)",
            "p(T X) & X < = 3 -> q(T X)",
            "= 3 & p(T X) -> q(T X)",
            "p(T X) & = 3 -> q(T X)",
            "p(T X) & X < (3 + ) -> q(T X)",
            "< 3 & p(T X) -> q(T X)",
            "p(T X) & X = -> q(T X)",
            "p(T X) & X = ",
        ),
    ),
    Hint(
        "negated comparison",
        "HPX027",
        '"not" stands before something that is not an atom',
        'Turn the comparison round ("A >= B" for "not A < B"), or negate each literal on its own.',
        (
            "p(T X) & not X < 3 -> q(T X)",
            "p(T X) & not (X < 3) -> q(T X)",
            "p(T X) & not not r(T X) -> q(T X)",
            "p(T X) & not 3 -> q(T X)",
            "not (r(T X) & p(T X)) -> q(T X)",
            "not X < 3 & p(T X) -> q(T X)",
        ),
    ),
    Hint(
        "bare words",
        "HPX028",
        "words stand where a literal should",
        'Write a literal as "predicate_name(Type X, Type Y)", the words of its name joined by "_".',
        (
            "p(T X) & tasty -> q(T X)",
            "tasty -> q(T X)",
            "X is tasty",
            "p(T X) -> tasty",
            "p(T X) & X is tasty -> q(T X)",
            "if p(T X) then q(T X)",
            "q(T X) :- tasty",
            "p(T X) -> is tasty",
            "p(T X) & tasty",
            "lorem ipsum, dolor sit amet",
        ),
    ),
    Hint(
        "value as literal",
        "HPX029",
        "a value stands where a literal should",
        'Write a literal as "predicate_name(Type X, Type Y)" or a comparison as "A < 3".',
        (
            '"a" & p(T X) -> q(T X)',
            "3 -> q(T X)",
            "p(T X) & 3 -> q(T X)",
            'p(T X) & "a" -> q(T X)',
            "3",
            '"a"',
            'p(T X) "a" -> q(T X)',
            "p(T X) 3 -> q(T X)",
            "3 & p(T X) -> q(T X)",
            "(p(T X) & q(T X)) -> r(T X)",
            "p(T X) & (q(T X)) -> r(T X)",
        ),
    ),
    Hint(
        "keyword inside a rule",
        "HPX030",
        "a sign stands where it means nothing",
        "Take it out; a sign that belongs to a text must stand inside quotes.",
        (
            "p(T X) : q(T X)",
            "p(T X) := q(T X)",
            "p(T X) / q(T X)",
            "p[T X] -> q(T X)",
            "p{T X} -> q(T X)",
            "p(T X)? -> q(T X)",
            "p(T X) -> q(T X)!",
            "p(T-X) -> q(T X)",
            "p(T X; T Y) -> q(T X)",
            "p(T X: T Y) -> q(T X)",
            "$ p(T X)",
            ": p(T X)",
            "/ p(T X)",
            "+",
            ")",
            "p(T X) < 3 -> q(T X)",
            "p(T X) & ? -> q(T X)",
            "p(T X) -> ?",
            "p(?) -> q(T X)",
            "p(T X, ?) -> q(T X)",
        ),
    ),
)
"""Found by lark's `match_examples`: the first label whose example fails in the same parser state wins."""

MEANING_HINTS: tuple[Hint, ...] = (
    Hint(
        "blank in a predicate name",
        "HPX040",
        'the predicate name "{name}" has blanks in it',
        'Write "{remedy}". Blanks are overlooked beside "_" only.',
        ("is allergic to(Person X, Food A) -> p(Person X, Food A)",),
    ),
    Hint(
        "no variable name",
        "HPX041",
        'the argument "{argument}" names no variable',
        'Add its name, a capital letter and perhaps digits: "{argument} X". A text has quotes: "{argument}".',
        ("p(Person, Food A) -> q(Food A)", "p(tom, Food A) -> q(Food A)", "p(Person X) & tasty < 3 -> q(Person X)"),
    ),
    Hint(
        "variable without a type",
        "HPX042",
        "no atom says which data type {name} has",
        'Write the type where the variable first occurs: "Ingredient {name}".',
        ("p(X, Food A) -> q(Food A)", "p(Food A) & B < 3 -> q(Food A)"),
    ),
    Hint(
        "variable in a fact",
        "HPX043",
        'the argument "{argument}" of a fact is not a constant',
        'Write texts in quotes: "{argument}". A statement about all values is a rule.',
        ("fact was_born_in(ada, 1815)", "fact was_born_in(Person X, 1815)"),
    ),
    Hint(
        "type expected",
        "HPX044",
        "a declaration names data types, not values",
        'Write "oracle is_in(Ingredient, Dish)".',
        ('oracle is_in("salt", Dish)', "functional was_born_in(Person, 1815)"),
    ),
    Hint(
        "parameter without a name",
        "HPX045",
        'the parameter "{argument}" of a computed predicate has no type and name of its own',
        'Write "computed is_earlier_than(Year A, Year B) := A < B", each name once.',
        (
            "computed p(Year, Year B) := B < 3",
            "computed p(Year A, Year A) := A < 3",
            "computed p(A, Year B) := B < 3",
            'computed p("a", Year B) := B < 3',
        ),
    ),
    Hint(
        "unknown parameter",
        "HPX046",
        "{name} is no parameter of the computed predicate",
        "Use its parameters and numbers only.",
        ("computed p(Year A, Year B) := A < C",),
    ),
    Hint(
        "too many templates",
        "HPX047",
        "a predicate has at most three templates",
        "Write the affirmative, the negated and the question form.",
        ('oracle p(A, B): "a" / "b" / "c" / "d"',),
    ),
    Hint(
        "slot without argument",
        "HPX048",
        "the template speaks of the slot [{slot}], which the predicate does not have",
        "Slots are [1], [2] ... up to the number of arguments.",
        ('oracle p(A, B): "[1] is in [3]"', 'oracle p(A, B): "[0] is in [1]"'),
    ),
    Hint(
        "unknown attribute",
        "HPX049",
        "no attribute is called @{name}",
        "Attributes are @name, @domain, @principle, @polarity and @generic.",
        ("@nmae allergy\np(Person X) -> q(Person X)",),
    ),
    Hint(
        "attribute value",
        "HPX050",
        'the value "{value}" does not suit @{name}',
        "{remedy}",
        (
            "@polarity sideways\np(Person X) -> q(Person X)",
            "@principle luck\np(Person X) -> q(Person X)",
            "@name\np(Person X) -> q(Person X)",
            "@generic Z\np(Person X) -> q(Person X)",
        ),
    ),
    Hint(
        "attribute twice",
        "HPX051",
        "@{name} stands twice before one rule",
        "Keep one of the two.",
        ("@name a\n@name b\np(Person X) -> q(Person X)",),
    ),
    Hint(
        "attribute without rule",
        "HPX052",
        "@{name} stands before something that is not a rule",
        "Write attributes directly before their rule.",
        ("@name a", "@name a\ntype Vehicle < Object"),
    ),
    Hint(
        "name twice",
        "HPX053",
        "two rules are named {name}",
        "Give one of them another @name.",
        ("@name a\np(Person X) -> q(Person X)\n@name a\nq(Person X) -> r(Person X)",),
    ),
    Hint(
        "unknown escape",
        "HPX054",
        'the escape "{escape}" in a quoted text means nothing',
        'Known are \\" \\\\ \\n \\t and \\u{{hexadecimal}}; a backslash itself is written \\\\.',
        ('fact p("a\\q")', 'fact p("\\u{{110000}}")'.replace("{{", "{").replace("}}", "}")),
    ),
    Hint(
        "number too large",
        "HPX055",
        "a number has more than {limit} digits or a power of ten beyond it",
        "Write a smaller number, or quote it as a text.",
        ("fact p(" + "9" * 500 + ")", "fact p(1e999)"),
    ),
    Hint(
        "too deep",
        "HPX056",
        "more than {limit} parentheses stand inside each other, or {limit} arithmetic operators in one statement",
        "Split the expression with further variables.",
        (
            "(" * 200 + "A" + ")" * 200 + " < 3 & p(Person X) -> q(Person X)",
            "A" + " + 1" * 200 + " < 3 & p(Age A) -> q(Age A)",
        ),
    ),
    Hint(
        "too long",
        "HPX057",
        "a statement has more than {limit} words and signs",
        "Split it into several rules.",
        ("p(Person X) & " * 2000 + "p(Person X) -> q(Person X)",),
    ),
)
"""Faults of statements that are well formed: names, types and values."""

GOAL_HINTS: tuple[Hint, ...] = (
    Hint(
        "unknown predicate",
        "HPX070",
        "a goal cannot call {name}",
        "{remedy}",
        ("shell(ls)", "p(X), q(X, Y)", "findall(X, assertz(p(X)), L)", "setof(X, Y^call(Y, X), L)"),
    ),
    Hint(
        "not callable",
        "HPX071",
        "{found} is not something that can be asked",
        "Ask with predicates: is_allergic_to(Who, What).",
        ("tom", "X", "p(X), Y", "findall(X, X, L)", "\\+ 3", "[p(X)]"),
    ),
    Hint(
        "structured argument",
        "HPX072",
        "{found} is no argument of a predicate",
        "Arguments are variables, words, quoted texts and numbers.",
        ("p(f(X))", "p([a])", "p(X + 1)", "p(shell(ls))"),
    ),
    Hint(
        "no number",
        "HPX073",
        "{found} has no number",
        "Arithmetic knows variables, numbers, + - * / // mod, abs, min and max.",
        ("X is tom + 1", "p(X), X < shell(ls)", "X is random(3)", "between(1, inf, X)"),
    ),
    Hint(
        "aggregate",
        "HPX074",
        "aggregate_all/3 cannot compute {found}",
        "It knows count, sum(X), max(X), min(X), max(X, W), min(X, W), bag(X) and set(X).",
        ("aggregate_all(average(X), p(X), A)", "aggregate_all(X, p(X), A)"),
    ),
    Hint(
        "goal too large",
        "HPX075",
        "the goal is longer than {length} characters, or nested or chained more than {depth} times",
        "Ask in smaller steps.",
        ("(" * 200 + "p(X)" + ")" * 200, "X is 1" + " + 1" * 200, "p(" + "a" * 100_001 + ")"),
    ),
    Hint(
        "goal syntax",
        "HPX076",
        "{found} is not expected in the goal",
        "Write a goal such as: is_allergic_to(Who, nuts), \\+ likes(Who, 'soy milk').",
        (
            "",
            "p(X",
            "p(X))",
            "p(X) p(Y)",
            "p(X) :- q(X)",
            "p('a",
            "p(X) -> p(Y)",
            "X = {a}",
            "p(X), ",
            "a.b",
            "p(X). p(Y)",
        ),
    ),
)
"""Faults of `query` goals; the examples are goals over a library that has p/1 alone."""

FAULTS_PER_FILE = 50
"""How many are listed; after twenty times as many the rest of the file is not read."""

SYNTAX_FAULT = Hint(
    "syntax",
    "HPX001",
    "{found} is not expected here",
    "Expected is {expected}.",
    ("p(Age A, Age B) & A > -B -> q(Age A)", "(X", "p *"),
)
"""Of statements that no hint's example is like."""

UNREADABLE = Hint(
    "unreadable", "HPX060", "the file cannot be read: {reason}", "{remedy}", ("hapax check no_such_file.rules",)
)
"""The example is a command: no text has this fault."""

TOO_MANY = Hint(
    "too many",
    "HPX061",
    "the list leaves out {count} of this file, perhaps others beyond them",
    "Mend the first ones.",
    ("p(T X)) -> q(T X)\n" * (FAULTS_PER_FILE + 1),),
)

FORM_HINTS: tuple[Hint, ...] = (SYNTAX_FAULT, *SYNTAX_HINTS, *MEANING_HINTS, UNREADABLE, TOO_MANY)
"""All that reading rule files can say."""


def hint(label: str) -> Hint:
    """The hint of that label; an unknown label is a programming error."""
    return _BY_LABEL[label]


_BY_LABEL = {entry.label: entry for entry in (*FORM_HINTS, *GOAL_HINTS)}
