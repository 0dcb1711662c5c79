"""Entailments between predicates, read, stored, chained and held against rules, are in `tests/golden/`."""

from __future__ import annotations

from itertools import product
from pathlib import Path

from entailment_lines import chain_lines, lines_of
from golden_fixture import compared
from kb_contents import contents

from hapax.engine.entailment.audited import audited_margin, keep_margin
from hapax.engine.entailment.checks import EntailmentLimits, entailment_faults
from hapax.engine.entailment.graph import Edge, entailment_scores, read_edges, store_edges, with_entailments
from hapax.engine.entailment.suggestions import suggestions
from hapax.grammar.errors import HapaxError
from hapax.grammar.parser import parse_library
from hapax.kb.store import KnowledgeBase

EDGES = """\
shopped_in(Person X, Shop A)\twent_to(Person X, Shop A)\t0.95
went_to(Person X, Shop A)\twas_at(Person X, Shop A)\t0.9
was_at(Person X, Shop A)\twent_to(Person X, Shop A)\t0.8
went_to(Person X, Place A)\twas_at(Person X, Place A)\t0.6
murdered(Person X, Person Y)\tkilled(Person X, Person Y)\t0.97
killed(Person X, Person Y)\tharmed(Person X, Person Y)\t0.9
owns(Person X, Vehicle V)\tis_owned_by(Vehicle V, Person X)\t0.99
is_owned_by(Vehicle V, Person X)\towns(Person X, Vehicle V)\t0.99
is_weakly_linked_to(Person X, Person Y)\tkilled(Person X, Person Y)\t0.2
knows(Person X, Person Y)\tknows(Person Y, Person X)\t0.7
can_digest(Person X, Food B)\tcan_eat(Person X, Food B)\t0.85
harmed(Person X, Person Y)\tmet(Person X, Person Y)\t0.5
met(Person X, Person Y)\tmet(Person Y, Person X)\t1
"""
FAULTY = {
    "no tab": "a(T X) b(T X) 0.5\n",
    "score": "a(T X)\tb(T X)\tmuch\n",
    "too large": "a(T X)\tb(T X)\t1.5\n",
    "below": "a(T X)\tb(T X)\t-0.1\n",
    "no atom": "a\tb(T X)\t0.5\n",
    "variables": "a(T X)\tb(T X, T Y)\t0.5\n",
    "constant": 'a(T X, "b")\tb(T X)\t0.5\n',
    "blank lines": "\n# a comment\na(T X)\tb(T X)\t0.5\n\n",
    "same": "a(T X)\ta(T X)\t0.5\n",
    "many": "".join(f"a{k}\tb\t2\n" for k in range(12)),
    "types": "a(Person X)\tb(Place X)\t0.5\n",
}
RULES = """
type Shop < Place
given is_in(Shop, City)
opposite can_eat cannot_eat
@name reversed_shop
went_to(Person X, Shop A) & is_in(Shop A, City C) -> shopped_in(Person X, Shop A)
@name reversed_murder
harmed(Person X, Person Y) & lives_in(Person Y, City C) -> murdered(Person X, Person Y)
@name redundant_shop
shopped_in(Person X, Shop A) & is_in(Shop A, City C) -> was_at(Person X, Shop A)
@name redundant_owner
owns(Person X, Vehicle V) & was_built_in(Vehicle V, Country L) -> is_owned_by(Vehicle V, Person X)
@name wanted
killed(Person X, Person Y) -> is_wanted(Person X)
@name redundant_special
murdered(Person X, Person Y) & is_old(Person Y) -> is_wanted(Person X)
@name contrary_food
is_allergic_to(Person X, Allergen A) & is_in_food(Allergen A, Food B) -> cannot_eat(Person X, Food B)
@name food
has_enzyme(Person X, Allergen A) & is_in_food(Allergen A, Food B) -> can_digest(Person X, Food B)
@name ally
is_allergic_to(Person X, Allergen A) & is_in_food(Allergen A, Food B) -> can_digest(Person X, Food B)
"""


def stored(kb: KnowledgeBase, folder: Path) -> list[Edge]:
    path = folder / "edges.tsv"
    path.write_text(EDGES, encoding="utf-8")
    found = read_edges(path)
    store_edges(kb, found)
    return found


def test_entailments_are_stored_looked_up_and_chained_as_before(tmp_path: Path) -> None:
    """Edges, their rules, those into and out of predicates, chains and paraphrases are those read over."""
    library = parse_library([("r.rules", RULES)])
    with KnowledgeBase() as kb:
        found = stored(kb, tmp_path)
        lines = [*lines_of(kb, library, found), *chain_lines(found)]
        joined = with_entailments(library, found)
        lines += [str(entailment_scores(joined)), *(str(rule) for rule in joined.rules)]
        lines.append(f"{audited_margin(kb)}")
        for margin in (0.3, 0.1, None):
            keep_margin(kb, "critic", margin)
            lines.append(f"{margin}: {audited_margin(kb)}")
        for least, margin in product((0.0, 0.5, 0.8), (0.0, 0.1, 0.15, 0.2)):
            lines.append(
                f"suggested {least}, {margin}: {[item.text for item in suggestions(found, library, least, margin)]}"
            )
        lines.append(contents(kb))

    compared("entailments/stored", "\n".join(lines) + "\n")


def test_rules_are_held_against_entailments_as_before(tmp_path: Path) -> None:
    """Reversed, redundant and contradicted rules are found at each limit, with place and remedy."""
    library = parse_library([("r.rules", RULES)])
    lines = []
    found = stored(KnowledgeBase(), tmp_path)
    for least, margin in product((0.0, 0.5, 0.85, 0.95), (0.0, 0.1, 0.2, 0.5)):
        lines.append(f"# {least}, {margin}")
        lines += [str(fault) for fault in entailment_faults(library, found, EntailmentLimits(least, margin))]

    compared("entailments/faults", "\n".join(lines) + "\n")


def test_faulty_files_of_entailments_are_refused_as_before(tmp_path: Path) -> None:
    """Each faulty line is told with place, fact and remedy."""
    lines = []
    for name, text in FAULTY.items():
        path = tmp_path / "edges.tsv"
        path.write_text(text, encoding="utf-8")
        for library in (None, parse_library([("r.rules", "type Person < Object\ntype Place < Object")])):
            try:
                lines.append(f"{name}: {[edge.name for edge in read_edges(path, library)]}")
            except HapaxError as refusal:
                lines.append(f"{name}: {str(refusal).replace(str(tmp_path), '')}")

    compared("entailments/refused", "\n".join(lines) + "\n")
