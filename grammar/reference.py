"""The page `docs/language.md`, made from the grammar and the tables of faults: `python -m grammar.reference`."""

from __future__ import annotations

import sys
from pathlib import Path

from grammar.errors import GOAL_HINTS, MEANING_HINTS, SYNTAX_HINTS, Hint
from grammar.goals import AGGREGATES, BUILT_INS

_TOUR = """# The rule language

<!-- Made by `python -m grammar.reference > docs/language.md`; change grammar/reference.py, rule.lark or errors.py. -->

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
first argument of the premise if it is concluded about.

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
        "## Faults\n\nAll faults of all files are told at once, at most fifty a file.\n",
        *map(_section, (*SYNTAX_HINTS, *MEANING_HINTS, *GOAL_HINTS)),
    ]
    return "\n".join(parts)


def _section(entry: Hint) -> str:
    example = entry.examples[0] or " "
    shortened = example if len(example) <= 100 else f"{example[:97]}..."
    return f"### {entry.code} {entry.label}\n\n{entry.message}. {entry.remedy}\n\n```\n{shortened}\n```\n"


if __name__ == "__main__":
    sys.stdout.write(language_page())
