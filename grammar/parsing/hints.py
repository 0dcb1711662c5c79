"""Hints for the meaning of statements, for files and for goals, and the table of all hints."""

from __future__ import annotations

from hapax.grammar.errors import UNREADABLE_FILE
from hapax.grammar.parsing.syntax_hints import SYNTAX_HINTS, UNEXPECTED_TOKEN, WORD_HINTS, Hint

MEANING_HINTS: tuple[Hint, ...] = (
    Hint(
        "blank in a predicate name",
        "HPX040",
        'the predicate name "{name}" contains blanks',
        'Write "{remedy}". Blanks are ignored only beside "_".',
        ("is allergic to(Person X, Food A) -> p(Person X, Food A)",),
        "is_allergic_to(Person X, Food A) -> p(Person X, Food A)",
    ),
    Hint(
        "no variable name",
        "HPX041",
        'the argument "{argument}" is neither a variable nor a value',
        "Write a variable after its type, such as Person X, of letters, digits and _; write blanks around a minus, "
        'and quote a text: "{argument}".',
        (
            "p(Person, Food A) -> q(Food A)",
            "p(red wine, Food A) -> q(Food A)",
            "p(Food A, Food B) & A < B-A -> q(Food A)",
        ),
        "p(Person X, Food A) -> q(Food A)",
    ),
    Hint(
        "column",
        "HPX042",
        "{problem}",
        "{remedy}",
        (
            "p(id: X) -> q(X)",
            "given p(id: Trip, delay: Minutes)\np(ident: X) -> q(X)",
            "given p(a: T, b: T)\np(a: X, Y) -> q(X)",
        ),
        "given p(id: Trip)\np(id: X) -> q(X)",
    ),
    Hint(
        "columns of a declaration",
        "HPX080",
        "the declaration of {name} names some columns and not all, or one twice",
        "Name each column once: given trip(id: Trip, air_time: Minutes).",
        ("given p(id: Trip, Minutes)", "given p(id: Trip, id: Minutes)"),
        "given p(id: Trip, delay: Minutes)",
    ),
    Hint(
        "columns compared",
        "HPX081",
        "a comparison of columns has more of them on one side",
        "Write as many on both: (A, B) < (C, D).",
        ("p(A, B, C) & (A, B) = (C, C, C) -> q(A)",),
        "p(A, B, C) & (A, B) = (C, C) -> q(A)",
    ),
    Hint(
        "probability",
        "HPX090",
        "the probabilities in {text} are no numbers from 0 to 1 with a sum of 1 at most",
        "Write them as numbers, as in 0.3::p(a) or 1/6::p(a), or as a variable that the premise binds.",
        ("1.3::p(a)", "0.7::p(X); 0.7::q(X) :- r(X)", "much::p(a)", "P::p(a)"),
        "0.3::p(a)",
    ),
    Hint(
        "range too long",
        "HPX085",
        "the ranges and pools stand for more than {limit} facts",
        "Import a table of them, or count by a rule: n(M) & M < 100000 & N = M + 1 -> n(N).",
        ("p(1..20000)", "p(X) & X = 1..20000 -> q(X)"),
        "p(1..200)",
    ),
    Hint(
        "range of variables",
        "HPX086",
        "the ends of a range in a fact are whole numbers",
        "Write numbers, or a rule: n(N) & X = 1..N -> p(X).",
        ("p(1..x)", "p(1.5..3)"),
        "p(1..3)",
    ),
    Hint(
        "range compared",
        "HPX087",
        "a range gives values by an equation alone",
        "Write X = 1..3; for other values, X < 1 | X > 3.",
        ("p(X) & X < 1..3 -> q(X)",),
        "p(X) & X = 1..3 -> q(X)",
    ),
    Hint(
        "misplaced shorthand",
        "HPX088",
        "a range or collection stands in a premise or fact alone, a pool in a fact",
        "Name the values in equations, as (X = a | X = b), and calculate in a rule.",
        ("p(a; b) & q(X) -> r(X)", "given p(a; b)", "computed p(A, B) := B = 1..A"),
        "p(X) & (X = a | X = b) -> r(X)",
    ),
    Hint(
        "too many alternatives",
        "HPX082",
        'the rule stands for more than {limit} rules, one for each way through its "or"',
        "Conclude a predicate from each group of alternatives, and use these predicates.",
        (" & ".join(["p(X, Y)", *["(X < 1 | Y < 1)"] * 7]) + " -> q(X)",),
        "p(X, Y) & (X < 1 | Y < 1) -> q(X)",
    ),
    Hint(
        "negated conjunction",
        "HPX069",
        "{negation} can only stand in a rule",
        "Conclude a predicate from it, and negate that.",
        ("never p(X) & not (q(X) & r(X))", "aggregate c(K) := K = count(X: p(X) & not q(X, _))"),
        "q(X) & r(X) -> both(X)\nnever p(X) & not both(X)",
    ),
    Hint(
        "variable in a fact",
        "HPX043",
        'the argument "{argument}" of a fact or an example is not a constant',
        'If it is a text, quote it: "{argument}". To state something about all values, write a rule.',
        ("was_born_in(Ada, 1815)", "fact was_born_in(Person X, 1815)", "@example was_born_in(ada king, 1815)"),
        'was_born_in("Ada", 1815)',
    ),
    Hint(
        "type expected",
        "HPX044",
        "an argument of the declaration is a value, not a data type",
        'Write data types, as in "oracle is_in(Ingredient, Dish)".',
        ('oracle is_in("salt", Dish)', "functional was_born_in(Person, 1815)"),
        "oracle is_in(Ingredient, Dish)",
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
        "computed p(Year A, Year B) := B < 3",
    ),
    Hint(
        "unknown parameter",
        "HPX046",
        "{name} is not a parameter of the computed predicate",
        "Use only its parameters and constants.",
        ("computed p(Year A, Year B) := A < C",),
        "computed p(Year A, Year C) := A < C",
    ),
    Hint(
        "too many templates",
        "HPX047",
        "the predicate has more than three templates",
        "Write the affirmative, the negated and the question form, in this order.",
        ('oracle p(A, B): "a" / "b" / "c" / "d"',),
        'oracle p(A, B): "[1] is in [2]" / "[1] is not in [2]" / "is [1] in [2]?"',
    ),
    Hint(
        "slot without argument",
        "HPX048",
        "the template contains the slot [{slot}], but the predicate has no such argument",
        "Number the slots [1], [2] ... up to the number of arguments.",
        ('oracle p(A, B): "[1] is in [3]"', 'oracle p(A, B): "[0] is in [1]"'),
        'oracle p(A, B): "[1] is in [2]"',
    ),
    Hint(
        "unknown attribute",
        "HPX049",
        "there is no attribute @{name}",
        "Use @name, @domain, @principle, @polarity, @generic, @most, @withdrawn or @example.",
        ("@nmae allergy\np(Person X) -> q(Person X)",),
        "@name allergy\np(Person X) -> q(Person X)",
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
        "@polarity negative\np(Person X) -> q(Person X)",
    ),
    Hint(
        "attribute twice",
        "HPX051",
        "@{name} appears twice before one rule",
        "Remove one of the two.",
        ("@name a\n@name b\np(Person X) -> q(Person X)",),
        "@name a\np(Person X) -> q(Person X)",
    ),
    Hint(
        "attribute without rule",
        "HPX052",
        "@{name} is not followed by a rule",
        "Write attributes directly before their rule.",
        ("@name a", "@name a\ntype Vehicle < Object"),
        "@name a\np(Person X) -> q(Person X)",
    ),
    Hint(
        "name twice",
        "HPX053",
        "two rules are named {name}",
        "Give one of them a different @name.",
        ("@name a\np(Person X) -> q(Person X)\n@name a\nq(Person X) -> r(Person X)",),
        "@name a\np(Person X) -> q(Person X)\n@name b\nq(Person X) -> r(Person X)",
    ),
    Hint(
        "unknown escape",
        "HPX054",
        'the character or escape "{escape}" cannot stand in a quoted text',
        'Use \\" \\\\ \\n \\t or \\u{{hexadecimal}}, and write a backslash as \\\\.',
        ('fact p("a\\q")', 'fact p("\\u{110000}")', 'fact p("\\u{0}")', 'fact p("\\u{d800}")', 'fact p("\0")'),
        'fact p("a\\\\q")',
    ),
    Hint(
        "number too large",
        "HPX055",
        "a number has more than {limit} digits, or an exponent larger than {limit}",
        "Write a smaller number, or quote it as a text.",
        ("fact p(" + "9" * 500 + ")", "fact p(1e999)"),
        "fact p(1e300)",
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
        "disjoint Food Allergen, Person",
    ),
    Hint(
        "closed by another argument",
        "HPX059",
        "a predicate cannot be closed by argument {position}",
        'Write "closed p/2 by 1", if the facts about each known first argument are complete, or "closed p/2".',
        ("closed has_capital/2 by 2",),
        "closed has_capital/2 by 1",
    ),
    Hint(
        "import of itself",
        "HPX064",
        "{file} imports itself under another name, and would do so again and again",
        "Leave out the name after `as`, or put what both need into a third file.",
        ('import "example.rules" as food',),
        'import "example.rules"',
    ),
    Hint(
        "unknown function",
        "HPX065",
        "{name} is not a function",
        "{remedy}",
        ("p(Age A) & sqrt(A) > 3 -> q(Age A)",),
        "p(Age A) & abs(A) > 3 -> q(Age A)",
    ),
    Hint(
        "arguments of a function",
        "HPX066",
        "{name} takes {wanted} arguments, not {count}",
        "Write as many.",
        ("p(Age A) & abs(A, 1) > 3 -> q(Age A)",),
        "p(Age A) & abs(A) > 3 -> q(Age A)",
    ),
    Hint(
        "unknown unit",
        "HPX067",
        "{unit} is not a unit of time",
        "Write a number of {units}; a text needs quotation marks.",
        ("p(Date A) & A > A + 3 apples -> q(Date A)",),
        "p(Date A) & A > A + 3 days -> q(Date A)",
    ),
    Hint(
        "exception apart from its rule",
        "HPX062",
        "{exception} shares no variable with its rule, so it would hold for all or for none",
        "Name what is excepted by a variable of the rule: ... unless is_penguin(Animal X).",
        ("is_bird(Animal X) -> can_fly(Animal X) unless is_winter(Season S)",),
        "is_bird(Animal X) -> can_fly(Animal X) unless is_penguin(Animal X)",
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
        "p(X)",
    ),
    Hint(
        "not callable",
        "HPX071",
        "{found} is no predicate, so it cannot be a goal",
        "{remedy}",
        ("tom", "findall(X, X, L)", "p"),
        "p(tom)",
    ),
    Hint(
        "not a number",
        "HPX073",
        "{found} is not an arithmetic expression",
        "Use variables, numbers, + - * / // mod, the functions of rules, and ** with an exponent from 0 to 1000.",
        ("X is tom + 1", "X is 2 ** Y"),
        "p(X), Y is 2 + 1",
    ),
    Hint(
        "aggregate",
        "HPX074",
        "aggregate_all/3 cannot compute {found}",
        "Use count, sum(X), max(X), min(X), max(X, W), min(X, W), bag(X) or set(X).",
        ("aggregate_all(average(X), p(X), A)", "aggregate_all(X, p(X), A)"),
        "aggregate_all(count, p(X), A)",
    ),
    Hint(
        "wrong argument",
        "HPX078",
        "{name} needs {wanted}, not {found}",
        "Use a variable or such a value.",
        ("length(L, -1)", "nth1(a, [x], Y)", "sum_list(x, N)", "between(1, inf, X)"),
        "length(L, 2)",
    ),
    Hint(
        "division by zero",
        "HPX077",
        "{found} divides by zero",
        "Correct the divisor.",
        ("X is 1 / 0", "p(X), Y is X mod 0", "1 // 0.0 < 3", "X is 1 / (2 - 2)"),
        "X is 1 / 2",
    ),
    Hint(
        "goal too long",
        "HPX075",
        "the goal has more than {limit} characters",
        "Split it into smaller goals.",
        ("p(" + "a" * 100_001 + ")",),
    ),
    Hint(
        "empty goal",
        "HPX076",
        "the goal is empty",
        "Write a goal such as: is_allergic_to(Who, nuts) & not likes(Who, 'soy milk').",
        ("?-", "", "."),
        "p(X)",
    ),
)
"""Problems of `query` goals. The examples are goals over a library that has only p/1."""

DIAGNOSTICS_PER_FILE = 50
"""Diagnostics listed per file. After twenty times as many, the rest of the file is not read."""

UNREADABLE = Hint(
    "unreadable", UNREADABLE_FILE, "the file cannot be read: {reason}", "{remedy}", ("hapax check no_such_file.rules",)
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
