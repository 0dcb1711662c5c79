"""Words for the facts of the atlas, from the templates and types of the rule library, as in a search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hapax.grammar.errors import HapaxError
from hapax.grammar.parser import load_library
from hapax.grammar.rules import Library, PredicateKind
from hapax.grammar.terms import Variable
from hapax.llm_oracle.embedded.atlas import Atlas

RULES_FOLDER = Path(__file__).parents[2] / "rules"
NARROWER_TYPES = frozenset({"Weapon"})
"""Types that rules use for an argument although some entities of the atlas there are not of the type; not taught."""


@dataclass(frozen=True, slots=True)
class PredicateWording:
    """The affirmative template of a predicate, and the type names that rules use for its arguments."""

    template: str
    data_types: tuple[tuple[str, ...], tuple[str, ...]]
    functional: bool
    """True if a search asks for the last argument with the functional prompt."""

    def words(self, first: str, second: str) -> str:
        """The atom in words; an open argument is given as its slot, such as `[B]`."""
        # By way of \0, because the first argument may contain "[2]".
        return self.template.replace("[1]", "\0").replace("[2]", second).replace("\0", first)

    @property
    def middle(self) -> str:
        """The text between the two arguments, with the blank before it but not the one after it."""
        return self.template.partition("[1]")[2].partition("[2]")[0].rstrip()


class AtlasWording:
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
            types = []
            declared_types = zip(relation.argument_types, signature.argument_types, strict=True)
            for position, (own, declared) in enumerate(declared_types):
                # The atlas's own type comes first, and no type is repeated.
                types.append(tuple(dict.fromkeys((own, declared, *used.get((predicate, position), ())))))
            first, second = types
            functional = signature.kind is PredicateKind.FUNCTIONAL
            self.predicates[predicate] = PredicateWording(signature.templates.affirmative, (first, second), functional)

    def claim(self, predicate: str, arguments: Sequence[object]) -> str:
        """The fact in words, without a capital letter or a full stop."""
        first, second = map(str, arguments)
        return self.predicates[predicate].words(first, second)


def load_wording(atlas: Atlas, folder: Path = RULES_FOLDER) -> AtlasWording:
    """The words for the atlas in the rule files of a folder."""
    return AtlasWording(atlas, load_library([folder]))


def _types_in_rules(library: Library) -> dict[tuple[str, int], tuple[str, ...]]:
    """The variable types that rules use at each argument position of each predicate."""
    used: dict[tuple[str, int], dict[str, None]] = {}
    for rule in library.rules:
        for atom in rule.atoms:
            for position, term in enumerate(atom.arguments):
                if isinstance(term, Variable) and term.data_type not in NARROWER_TYPES:
                    used.setdefault((atom.predicate, position), {})[term.data_type] = None
    return {place: tuple(types) for place, types in used.items()}
