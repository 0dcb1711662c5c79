"""How the atlas's facts are worded: by the rule library's templates and types, so that training meets the search's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from grammar.errors import HapaxError
from grammar.parser import load_library
from grammar.rules import Library, PredicateKind
from grammar.terms import Variable
from llm_oracle.embedded.atlas import Atlas

RULES_FOLDER = Path(__file__).parents[2] / "rules"
NARROWER_TYPES = frozenset({"Weapon"})
"""Types that rules write for an argument although not all of the atlas's entities there are of it: never taught."""


@dataclass(frozen=True, slots=True)
class PredicateWording:
    """One predicate's affirmative template and the type names that rules use for its arguments."""

    template: str
    data_types: tuple[tuple[str, ...], tuple[str, ...]]
    functional: bool
    """Whether the search asks for the last argument with the functional prompt."""

    def words(self, first: str, second: str) -> str:
        """The atom in words; an open argument comes as its slot, such as `[B]`."""
        return self.template.replace("[1]", "\0").replace("[2]", second).replace("\0", first)

    @property
    def middle(self) -> str:
        """What stands between the two arguments, with the blank before it and none behind."""
        return self.template.partition("[1]")[2].partition("[2]")[0].rstrip()


class Wording:
    """Words for every predicate of an atlas."""

    def __init__(self, atlas: Atlas, library: Library) -> None:
        self.library = library
        used = _types_in_rules(library)
        signatures = {
            signature.name: signature for signature in library.signatures if len(signature.argument_types) == 2
        }
        self.predicates: dict[str, PredicateWording] = {}
        for predicate, relation in atlas.relations.items():
            signature = signatures.get(predicate)
            if signature is None or signature.templates is None:
                raise HapaxError(
                    f"The atlas lists {predicate}, but no rule file declares it with templates. Declare it."
                )
            first, second = (
                tuple(dict.fromkeys((own, declared, *used.get((predicate, position), ()))))
                for position, (own, declared) in enumerate(
                    zip(relation.argument_types, signature.argument_types, strict=True)
                )
            )
            functional = signature.kind is PredicateKind.FUNCTIONAL
            self.predicates[predicate] = PredicateWording(signature.templates.affirmative, (first, second), functional)

    def claim(self, predicate: str, arguments: Sequence[object]) -> str:
        """The fact in words, without capital and full stop."""
        first, second = map(str, arguments)
        return self.predicates[predicate].words(first, second)


def load_wording(atlas: Atlas, folder: Path = RULES_FOLDER) -> Wording:
    """The words that the rule files of a folder have for the atlas."""
    return Wording(atlas, load_library([folder]))


def _types_in_rules(library: Library) -> dict[tuple[str, int], tuple[str, ...]]:
    """The variable types that rules write at each argument position of each predicate."""
    used: dict[tuple[str, int], dict[str, None]] = {}
    for rule in library.rules:
        for atom in rule.atoms:
            for position, term in enumerate(atom.arguments):
                if isinstance(term, Variable) and term.data_type not in NARROWER_TYPES:
                    used.setdefault((atom.predicate, position), {})[term.data_type] = None
    return {place: tuple(types) for place, types in used.items()}
