"""The page `docs/language.md`, made from the grammar and the tables of faults: `python -m grammar.reference`."""

from __future__ import annotations

import sys
from pathlib import Path

from grammar.checks import check_library
from grammar.errors import FORM_HINTS, GOAL_HINTS, Hint
from grammar.faults import FAULTS, KB_FAULTS, MODEL_FAULTS, Fault
from grammar.goals import AGGREGATES, BUILT_INS
from grammar.parser import parse_library

_TOUR = """# The rule language

<!-- Made by `python -m grammar.reference`; change grammar/reference.py, rule.lark, errors.py or faults.py. -->

A rule file is UTF-8 text. `#` or `%` starts a comment. A statement ends with its line or with a full stop; it goes
on over the line's end inside parentheses and beside an operator.

```
type Food Allergen < Object                     # a subtype; Year and Age are numbers already
oracle is_ingredient_in(Ingredient, Dish): "[1] is an ingredient in [2]" / "[1] is not an ingredient in [2]"
functional was_invented_in(Invention, Year): "[1] was invented in [2]"        # one right last argument
computed is_earlier_than(Year A, Year B) := A < B                             # arithmetic, never asked
given was_born_in(Person, Year)                                               # said by you, never asked
opposite can_plant cannot_plant
fact was_born_in("Ada", 1815)

@name allergy
@domain "outcomes and effects"
is_allergic_to(Person X, Food Allergen A) & is_ingredient_in(Ingredient Z, Dish B)
  & is_one_type_of(Ingredient Z, Food Allergen A) -> is_not_able_to_eat(Person X, Dish B)

cannot_use(Person X, Invention I) :- was_born_in(Person X, Year A), was_invented_in(I, Year B), A + 100 < B
```

## Rules

- `premise -> conclusion` with `&` between the literals, or `conclusion :- premise` with `&` or `,`. Arrows are
  `->`, `=>`, `→`, `⇒` and `\\to`; "and" is also `∧` or `\\land`.
- `not p(...)` (also `\\+`, `¬`, `~`) holds where the premise's atom has no proof. A conclusion cannot be negated.
- An argument is `Type Words X`, or `X` alone where another atom says the type, or a quoted text, or a number. A
  variable is one capital letter, perhaps with digits.
- Types compare without regard to case. One variable has one type: the most specific of those used, if they lie on
  one line of subtypes. Every type but Person and its subtypes is an Object.
- Comparisons are `<`, `=<`, `>`, `>=`, `=` and `\\=` over numbers, texts and variables, with `+ - * /`. `V =
  expression` gives a new variable its value. Arithmetic is exact; division by zero and arithmetic on texts are
  false.
- Quoted texts know the escapes `\\"`, `\\\\`, `\\n`, `\\t` and `\\u{hexadecimal}`.
- Blanks beside `_` in a name are overlooked, as LINK prints them.

## Attributes

They stand before their rule. `@name`: else `rule1`, `rule2` ... by position. `@domain`: any words. `@polarity
positive` or `negative`: else negative where the conclusion's name denies (`cannot_`, `is_not_`, `has_no_` ...).
`@principle compatibility` or `exclusion`: else exclusion where the polarity is negative. `@generic X Y` or `none`:
the variables a statement speaks about and no search binds; else the Persons of premise and conclusion, else the
first argument of the premise if it is concluded about. `hapax plan` shows which they are and why; `hapax check` notes
rules that conclude about no person and leave it to the default.

## Templates

After `:` stand up to three sentences: affirmative, negated, question. `[1]` is the first argument. What is missing
is made from what is there, in the end from the predicate's name.
"""

_GOALS = """## Goals

`hapax query` reads Prolog's notation: variables are capitalised, texts are lower-case words or quoted. A goal may
call the predicates of the rule files and

{built_ins}.

`aggregate_all/3` computes count, {aggregates}. Nothing else can be called.
"""

_FAULTS = """## Faults

Each has a code, a message, a remedy and here an example that has it. Rules with errors (`HPX0..`, `HPX1..`) are not
searched; warnings (`HPX2..`) and notes (`HPX3..`) stop nothing.

### Faults of form

All faults of all files are told at once, at most fifty a file; what only follows from another fault is not told. Faults
from HPX070 on are those of goals. Words in braces stand for what was found.
"""

_CHECKS = """### Faults of meaning

`hapax check` finds these in rules that are well formed. The sentence is what it says of the example.
"""

_KB_CHECKS = """### Faults of a knowledge base

`hapax check --db FILE` finds these in facts and statements; each example is rules under which facts can have the fault.
"""

_MODEL_CHECKS = """### Faults by a model's judgement

`hapax rules lint -m MODEL` finds these where the model's P(yes) is below one half. They are opinions, not proofs.
"""


def language_page() -> str:
    """The whole page."""
    grammar = Path(__file__).with_name("rule.lark").read_text(encoding="utf-8")
    parts = [
        _TOUR,
        _GOALS.format(
            built_ins=", ".join(f"`{name}`" for name in BUILT_INS),
            aggregates=", ".join(f"`{name}`" for name in AGGREGATES),
        ),
        f"## Grammar\n\n`grammar/rule.lark`:\n\n```\n{grammar.rstrip()}\n```\n",
        _FAULTS,
        *map(_of_form, (*FORM_HINTS, *GOAL_HINTS)),
        _CHECKS,
        *map(_of_meaning, FAULTS),
        _KB_CHECKS,
        *(_section(fault.code, _name(fault), "", fault.example) for fault in KB_FAULTS),
        _MODEL_CHECKS,
        *(_section(fault.code, _name(fault), "", fault.example) for fault in MODEL_FAULTS),
    ]
    return "\n".join(parts)


def _of_form(entry: Hint) -> str:
    example = entry.examples[0] or " "
    shortened = example if len(example) <= 100 else f"{example[:97]}..."
    return _section(entry.code, entry.label, f"{entry.message}. {entry.remedy}", shortened)


def _of_meaning(fault: Fault) -> str:
    found = check_library(parse_library([("example.rules", fault.example)]))
    told = next(str(one) for one in found if one.code == fault.code).partition(f"{fault.code}: ")[2]
    return _section(fault.code, _name(fault), told, fault.example)


def _name(fault: Fault) -> str:
    return f"{fault.name} ({fault.severity})"


def _section(code: str, name: str, told: str, example: str) -> str:
    parts = [f"#### {code} {name}", told, f"```\n{example}\n```"]
    return "\n\n".join(filter(None, parts)) + "\n"


if __name__ == "__main__":
    sys.stdout.write(language_page())
