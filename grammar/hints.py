"""Hints: the kinds of diagnostics for malformed rules and goals, each with malformed examples.

The parser finds the hint for a syntax error by comparing it with the examples; tests and `docs/language.md` read the
same tables. A new hint is one entry here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hapax.grammar.errors import Diagnostic, Place, Severity, TextRepair


@dataclass(frozen=True, slots=True)
class Hint:
    """A kind of diagnostic for malformed text. `{...}` in message and remedy is filled in; `examples` are texts that
    are malformed in exactly this way.
    """

    label: str
    code: str
    message: str
    remedy: str
    examples: tuple[str, ...]

    def at(self, place: Place, *related: Place, fix: Iterable[TextRepair] = (), **words: str) -> Diagnostic:
        message, remedy = self.message.format(**words), self.remedy.format(**words)
        return Diagnostic(self.code, Severity.ERROR, place, message, remedy, related, tuple(fix))


SYNTAX_HINTS: tuple[Hint, ...] = (
    Hint(
        "comma between premises",
        "HPX002",
        'the literals of a premise before "->" are joined by ","',
        'Join them with "&", or write the rule as "conclusion :- literal, literal".',
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
        "two literals follow each other without an operator",
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
        "the rule ends without a conclusion",
        'Write "premise -> conclusion", with one atom after the arrow, or "fact" before an atom that always holds.',
        ("p(T X, T Y) & q(T Y, T Z)", "p(T X, T Y)", "p(T X, T Y) ->", "X < 3", "p(T X) & X < 3"),
    ),
    Hint(
        "more than one conclusion",
        "HPX005",
        "the rule has more than one conclusion",
        "Write one rule for each conclusion.",
        ("p(T X, T Y) -> q(T X) & r(T Y)", "p(T X, T Y) -> q(T X), r(T Y)", "p(T X) -> q(T X) -> r(T X)"),
    ),
    Hint(
        "two arrows",
        "HPX006",
        'the rule has both ":-" and "->", or a ":-" in the wrong place',
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
        'Conclude the opposite predicate (cannot_plant), and declare the pair: "opposite can_plant cannot_plant".',
        ("p(T X, T Y) -> not q(T X, T Y)", "not q(T X) :- p(T X)", "r(T X) & p(T X) -> \\+ q(T X)"),
    ),
    Hint(
        "comparison as conclusion",
        "HPX008",
        "the conclusion must be an atom, not a comparison or a value",
        'Conclude a predicate. For arithmetic, declare one: "computed is_older_than(Age A, Age B) := A > B".',
        ("p(T X, T Y) -> X < Y", "p(T X, T Y) -> X = Y", "p(T X) -> 3", 'p(T X) -> "yes"', "p(T X) -> (X < 3)"),
    ),
    Hint(
        "empty premise",
        "HPX009",
        "the rule has no premise",
        'Write a literal on both sides of the arrow. If the atom always holds, write "fact" before it.',
        ("-> p(T X)", "p(T X) :-", ":- p(T X)"),
    ),
    Hint(
        "missing literal",
        "HPX010",
        'a literal is missing beside "&" or ","',
        'Remove the extra "&" or ",", or write the literal.',
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
        'a rule cannot contain "or"',
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
        'a "(" is not closed before the next literal or the end of the statement',
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
        'a ")" has no matching "("',
        "Remove it.",
        ("p(T X)) -> q(T X)", "p(T X) & q(T X)) -> r(T X)", "p(T X) -> q(T X))", "q(T X) :- p(T X))"),
    ),
    Hint(
        "missing argument",
        "HPX014",
        "an argument is missing",
        'Write each argument as "Type X", "X", a text in quotes or a number, and separate them by commas.',
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
        "Use variables, quoted texts or numbers as arguments, and express the inner term by a literal of its own.",
        ("p(f(T X), T Y) -> q(T X)", "p(T X, f(T Y)) -> q(T X)", "p(T X) -> q(f(T X))"),
    ),
    Hint(
        "expression as argument",
        "HPX016",
        "an argument is an expression",
        'Use a new variable as the argument, and add its value to the premise: "& V = A + 1".',
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
        'Close it with ", and write a quotation mark inside it as \\".',
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
        "wrong quotation mark",
        "HPX018",
        "the quotation mark is not the straight double one",
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
        "malformed subtype",
        "HPX019",
        "the subtype declaration is malformed",
        'Write it as "type Food Allergen < Object", one pair per line.',
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
        "malformed declaration",
        "HPX020",
        "the declaration is malformed",
        'Write it as: oracle is_in(Ingredient, Dish): "[1] is in [2]" / "[1] is not in [2]" / "is [1] in [2]?"',
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
        "malformed import",
        "HPX063",
        "an import names no file in quotation marks, or has more than a name behind it",
        'Write it as: import "food.rules", or with a name for its predicates: import "food.rules" as food.',
        (
            "import",
            "import food",
            'import "a.rules" food',
            'import "a.rules" as',
            'import "a.rules" as "b"',
            'import "a.rules", "b.rules"',
            'import "a.rules" & "b.rules"',
            "import 3",
        ),
    ),
    Hint(
        "malformed computed predicate",
        "HPX021",
        "a computed predicate is not defined by a single comparison",
        'Write it as "computed is_earlier_than(Year A, Year B) := A < B".',
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
        "malformed opposite",
        "HPX022",
        "the declaration of opposites is malformed",
        'Write two names and nothing else: "opposite can_plant cannot_plant".',
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
        "malformed fact",
        "HPX023",
        "a fact is not a single atom",
        'Write it as: fact was_born_in("Ada", 1815). If it holds only under a condition, write a rule.',
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
        "malformed attribute",
        "HPX024",
        "an attribute is followed by more than words",
        'End the line after the value, or quote a value with signs in it: @domain "outcomes & effects".',
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
        "two comparisons are chained",
        'Write them separately: "A < B & B < C".',
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
        "missing operand",
        "HPX026",
        "a value is missing on one side of an operator",
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
        "negation of a non-atom",
        "HPX027",
        '"not" stands before something that is not an atom',
        'Reverse the comparison ("A >= B" instead of "not A < B"), or negate each literal on its own.',
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
        "there are words in place of a literal",
        'Write a literal as "predicate_name(Type X, Type Y)", and join the words of its name by "_".',
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
        "there is a value in place of a literal",
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
        "misplaced sign",
        "HPX030",
        "a sign has no meaning at this place",
        "Remove it, or put it inside quotes if it belongs to a text.",
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
    Hint(
        "malformed property",
        "HPX031",
        "the declaration of a predicate's property or closedness is malformed",
        'Write the name and the number of arguments: "symmetric borders/2", or "closed borders/2 by 1".',
        (
            "symmetric borders",
            "transitive borders(Country, Country)",
            "asymmetric a/2, b/2",
            "irreflexive a/2 b/2",
            "closed borders",
            "closed borders/2 by first",
            "closed borders/2 by",
            "closed borders(Country, Country)",
        ),
    ),
    Hint(
        "malformed constraint",
        "HPX032",
        "the constraint is malformed",
        'Write premises that do not hold together: "never is_dead(Person X) & is_alive(Person X)".',
        (
            "never p(T X) -> q(T X)",
            "never p(T X), q(T X)",
            "never p",
            "never p(T X) q(T X)",
        ),
    ),
)
"""Used by lark's `match_examples`: the first hint with an example that fails in the same parser state wins, so the
order matters.
"""

WORD_HINTS: tuple[Hint, ...] = (
    Hint(
        "dash",
        "HPX033",
        'the sign "{sign}" is a dash, not the hyphen of an arrow or a minus',
        'Write "->" for an arrow and "-" for a minus.',
        ("p(T X, T Y) \u2014> q(T X)", "p(T X, T Y) \u2013> q(T X)", "p(Age X) & X < \u22123 -> q(Age X)"),
    ),
    Hint(
        "invisible character",
        "HPX034",
        "the invisible character {point} stands here",
        "Remove it.",
        ("p(T X,\u200b T Y) -> q(T X)", "p(T X) & \u202eq(T X) -> r(T X)"),
    ),
    Hint(
        "misspelt keyword",
        "HPX035",
        "{word} begins no statement",
        'Did you mean "{keyword}"?',
        ("orcale is_in(Ingredient, Dish)", 'fcat p("a")', "symetric borders/2"),
    ),
    Hint(
        "type in a comparison",
        "HPX036",
        '"{operator}" stands behind the variable {variable} with its type',
        'Only an equation of a rule defines a variable, as "Number K = A + 1" does; write the name alone: {name}.',
        ("p(Age A) & Age A < 3 -> q(Age A)", "computed p(Year A, Year B) := Year B = A + 1"),
    ),
    Hint(
        "dotted name",
        "HPX037",
        'the name "{prefix}.{name}" has a dot',
        'The predicates of a file that is imported as {prefix} end in this name: write "{name}_{prefix}".',
        ("food.is_in(T X, T Y) -> q(T X)", "p(T X) & food.q(T X) -> r(T X)", "p(T X) -> food.q(T X)"),
    ),
)
"""For statements whose first fault is one character or word, whatever stands around it."""

MEANING_HINTS: tuple[Hint, ...] = (
    Hint(
        "blank in a predicate name",
        "HPX040",
        'the predicate name "{name}" contains blanks',
        'Write "{remedy}". Blanks are ignored only beside "_".',
        ("is allergic to(Person X, Food A) -> p(Person X, Food A)",),
    ),
    Hint(
        "no variable name",
        "HPX041",
        'the argument "{argument}" does not end in the name of a variable',
        "{remedy}.",
        ("p(Person, Food A) -> q(Food A)", "p(tom, Food A) -> q(Food A)", "p(Person X) & tasty < 3 -> q(Person X)"),
    ),
    Hint(
        "variable without a type",
        "HPX042",
        "no atom gives the variable {name} a data type",
        "{remedy}.",
        ("p(X, Food A) -> q(Food A)", "p(Food A) & B < 3 -> q(Food A)"),
    ),
    Hint(
        "variable in a fact",
        "HPX043",
        'the argument "{argument}" of a fact or an example is not a constant',
        'If it is a text, quote it: "{argument}". To state something about all values, write a rule.',
        ("fact was_born_in(ada, 1815)", "fact was_born_in(Person X, 1815)", "@example was_born_in(Person X, 1815)"),
    ),
    Hint(
        "type expected",
        "HPX044",
        "an argument of the declaration is a value, not a data type",
        'Write data types, as in "oracle is_in(Ingredient, Dish)".',
        ('oracle is_in("salt", Dish)', "functional was_born_in(Person, 1815)"),
    ),
    Hint(
        "parameter without a name",
        "HPX045",
        'the parameter "{argument}" of a computed predicate needs a type and a name that no other parameter has',
        'Write the parameters as in "computed is_earlier_than(Year A, Year B) := A < B".',
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
        "{name} is not a parameter of the computed predicate",
        "Use only its parameters and constants.",
        ("computed p(Year A, Year B) := A < C",),
    ),
    Hint(
        "too many templates",
        "HPX047",
        "the predicate has more than three templates",
        "Write the affirmative, the negated and the question form, in this order.",
        ('oracle p(A, B): "a" / "b" / "c" / "d"',),
    ),
    Hint(
        "slot without argument",
        "HPX048",
        "the template contains the slot [{slot}], but the predicate has no such argument",
        "Number the slots [1], [2] ... up to the number of arguments.",
        ('oracle p(A, B): "[1] is in [3]"', 'oracle p(A, B): "[0] is in [1]"'),
    ),
    Hint(
        "unknown attribute",
        "HPX049",
        "there is no attribute @{name}",
        "Use @name, @domain, @principle, @polarity, @generic, @most, @withdrawn or @example.",
        ("@nmae allergy\np(Person X) -> q(Person X)",),
    ),
    Hint(
        "attribute value",
        "HPX050",
        '"{value}" is not a valid value of @{name}',
        "{remedy}",
        (
            "@polarity sideways\np(Person X) -> q(Person X)",
            "@principle luck\np(Person X) -> q(Person X)",
            "@name\np(Person X) -> q(Person X)",
            "@generic Z\np(Person X) -> q(Person X)",
            "@most two per A\np(Person X, Food A) -> q(Person X, Food A)",
            "@most 2 per Z\np(Person X, Food A) -> q(Person X, Food A)",
        ),
    ),
    Hint(
        "attribute twice",
        "HPX051",
        "@{name} appears twice before one rule",
        "Remove one of the two.",
        ("@name a\n@name b\np(Person X) -> q(Person X)",),
    ),
    Hint(
        "attribute without rule",
        "HPX052",
        "@{name} is not followed by a rule",
        "Write attributes directly before their rule.",
        ("@name a", "@name a\ntype Vehicle < Object"),
    ),
    Hint(
        "name twice",
        "HPX053",
        "two rules are named {name}",
        "Give one of them a different @name.",
        ("@name a\np(Person X) -> q(Person X)\n@name a\nq(Person X) -> r(Person X)",),
    ),
    Hint(
        "unknown escape",
        "HPX054",
        'the character or escape "{escape}" cannot stand in a quoted text',
        'Use \\" \\\\ \\n \\t or \\u{{hexadecimal}}, and write a backslash as \\\\.',
        ('fact p("a\\q")', 'fact p("\\u{110000}")', 'fact p("\\u{0}")', 'fact p("\\u{d800}")', 'fact p("\0")'),
    ),
    Hint(
        "number too large",
        "HPX055",
        "a number has more than {limit} digits, or an exponent larger than {limit}",
        "Write a smaller number, or quote it as a text.",
        ("fact p(" + "9" * 500 + ")", "fact p(1e999)"),
    ),
    Hint(
        "too deep",
        "HPX056",
        "the statement has more than {limit} nested parentheses or arithmetic operators",
        "Split the expression with further variables.",
        (
            "(" * 200 + "A" + ")" * 200 + " < 3 & p(Person X) -> q(Person X)",
            "A" + " + 1" * 200 + " < 3 & p(Age A) -> q(Age A)",
        ),
    ),
    Hint(
        "too long",
        "HPX057",
        "the statement has more than {limit} words and signs",
        "Split it into several rules.",
        ("p(Person X) & " * 2000 + "p(Person X) -> q(Person X)",),
    ),
    Hint(
        "types not separated",
        "HPX058",
        'the disjoint types in "{types}" are not two, or not separated',
        "Write two types with a comma between them: disjoint Food Allergen, Person.",
        ("disjoint Food Allergen Person", "disjoint Person"),
    ),
    Hint(
        "closed by another argument",
        "HPX059",
        "a predicate cannot be closed by argument {position}",
        'Write "closed p/2 by 1", if the facts about each known first argument are complete, or "closed p/2".',
        ("closed has_capital/2 by 2",),
    ),
    Hint(
        "import of itself",
        "HPX064",
        "{file} imports itself under another name, and would do so again and again",
        "Leave out the name behind `as`, or put what both need into a third file.",
        ('import "example.rules" as food',),
    ),
    Hint(
        "exception apart from its rule",
        "HPX062",
        "{exception} shares no variable with its rule, so it would hold for all or for none",
        "Name what is excepted by a variable of the rule: ... unless is_penguin(Animal X).",
        ("is_bird(Animal X) -> can_fly(Animal X) unless is_winter(Season S)",),
    ),
)
"""Problems of statements that parse: names, types and values. Found by `assemble.py`."""

GOAL_HINTS: tuple[Hint, ...] = (
    Hint(
        "unknown predicate",
        "HPX070",
        "{name} is not a predicate that a goal can call",
        "{remedy}",
        ("shell(ls)", "p(X), q(X, Y)", "findall(X, assertz(p(X)), L)", "setof(X, Y^call(Y, X), L)"),
    ),
    Hint(
        "not callable",
        "HPX071",
        "{found} is not a predicate with arguments, so it cannot be a goal",
        "Write a predicate with arguments, such as is_allergic_to(Who, What).",
        ("tom", "X", "p(X), Y", "findall(X, X, L)", "\\+ 3", "[p(X)]"),
    ),
    Hint(
        "structured argument",
        "HPX072",
        "{found} cannot be an argument of a predicate",
        "Use a variable, a word, a quoted text or a number.",
        ("p(f(X))", "p([a])", "p(X + 1)", "p(shell(ls))"),
    ),
    Hint(
        "not a number",
        "HPX073",
        "{found} is not an arithmetic expression",
        "Use variables and numbers with + - * / // mod, abs, min, max, and ** with an exponent from 0 to 1000.",
        ("X is tom + 1", "X is 2 ** Y", "p(X), X < shell(ls)", "X is random(3)"),
    ),
    Hint(
        "aggregate",
        "HPX074",
        "aggregate_all/3 cannot compute {found}",
        "Use count, sum(X), max(X), min(X), max(X, W), min(X, W), bag(X) or set(X).",
        ("aggregate_all(average(X), p(X), A)", "aggregate_all(X, p(X), A)"),
    ),
    Hint(
        "wrong argument",
        "HPX078",
        "{name} needs {wanted}, not {found}",
        "Use a variable or such a value.",
        ("length(L, -1)", "nth1(a, [x], Y)", "sum_list(x, N)", "between(1, inf, X)", "X is 7 mod 1.5"),
    ),
    Hint(
        "division by zero",
        "HPX077",
        "{found} divides by zero",
        "Correct the divisor.",
        ("X is 1 / 0", "p(X), Y is X mod 0", "1 // 0.0 < 3", "X is 1 / (2 - 2)"),
    ),
    Hint(
        "goal too large",
        "HPX075",
        "the goal has more than {length} characters, or more than {depth} nested parentheses or operators",
        "Split it into smaller goals.",
        ("(" * 200 + "p(X)" + ")" * 200, "X is 1" + " + 1" * 200, "p(" + "a" * 100_001 + ")"),
    ),
    Hint(
        "goal syntax",
        "HPX076",
        "{found} is not expected here",
        "Write a goal such as: is_allergic_to(Who, nuts), \\+ likes(Who, 'soy milk').",
        (
            "",
            "p(X",
            "p(X))",
            "p(X) p(Y)",
            "p(X) :- q(X)",
            "p('a",
            "p(X) -> ",
            "X = {a}",
            "p(X), ",
            "a.b",
            "p(X). p(Y)",
        ),
    ),
)
"""Problems of `query` goals. The examples are goals over a library that has only p/1."""

DIAGNOSTICS_PER_FILE = 50
"""Diagnostics listed per file. After twenty times as many, the rest of the file is not read."""

UNEXPECTED_TOKEN = Hint(
    "unexpected token",
    "HPX001",
    "{found} is not expected here",
    "Expected: {expected}.",
    ("p(Age A, Age B) & A > -B -> q(Age A)", "(X", "p *"),
)
"""For statements that resemble no example of SYNTAX_HINTS."""

UNREADABLE = Hint(
    "unreadable", "HPX060", "the file cannot be read: {reason}", "{remedy}", ("hapax check no_such_file.rules",)
)
"""The example is a command, because no text can have this problem."""

TOO_MANY = Hint(
    "too many",
    "HPX061",
    "{count} in this file, or more if reading stopped there, are not listed",
    "Fix the listed ones first.",
    ("p(T X)) -> q(T X)\n" * (DIAGNOSTICS_PER_FILE + 1),),
)

FORM_HINTS: tuple[Hint, ...] = (
    *(UNEXPECTED_TOKEN, *SYNTAX_HINTS, *WORD_HINTS, *MEANING_HINTS),
    *(UNREADABLE, TOO_MANY),
)
"""Everything that reading rule files can report."""


def hint(label: str) -> Hint:
    """The hint with this label. An unknown label is a programming error (KeyError)."""
    return _BY_LABEL[label]


_BY_LABEL = {entry.label: entry for entry in (*FORM_HINTS, *GOAL_HINTS)}
