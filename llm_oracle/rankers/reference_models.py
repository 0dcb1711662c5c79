"""The model string `reference:FILE`: reference tables as knowledge model, critic and ranker."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from hapax.grammar.data_types import type_key
from hapax.grammar.errors import HapaxError
from hapax.grammar.parsing.declarations import Closedness
from hapax.grammar.rules import Library
from hapax.llm_oracle.backend import ALL_ROLES, Backend, ModelRequest
from hapax.llm_oracle.budget import FREE
from hapax.llm_oracle.references.mapping import ALL, SHIPPED, Mapping, read_mapping, shipped_names
from hapax.llm_oracle.references.model import ReferenceModel, open_reference


def installed_references() -> tuple[str, ...]:
    """Names of the shipped mappings whose data is installed."""
    return tuple(name for name in shipped_names() if not _missing(read_mapping(SHIPPED / f"{name}.yaml")))


def covering_references(library: Library) -> tuple[str, ...]:
    """Names of the installed mappings with a predicate, or a closed list of a type, that the library uses."""
    used = set(map(type_key, _argument_types(library)))
    names = []
    for name in installed_references():
        model = open_reference(name, (SHIPPED / f"{name}.yaml",), library)
        sections = read_mapping(SHIPPED / f"{name}.yaml").types
        closed = {type_key(title) for title, section in sections.items() if section.closedness is Closedness.CLOSED}
        if model.identity.knows or closed & used:
            names.append(name)
    return tuple(names)


def _argument_types(library: Library) -> set[str]:
    """The data types of all arguments of a library's predicates."""
    types: set[str] = set()
    for signature in library.completed().signatures:
        types.update(signature.argument_types)
    return types


def _missing(mapping: Mapping) -> tuple[str, ...]:
    """Modules and files that a mapping needs and that are not installed."""
    missing = []
    for need in mapping.needs:
        # `find_spec` does not import the module, which may be large.
        is_there = Path(need).exists() if need.startswith("/") else find_spec(need) is not None
        if not is_there:
            missing.append(need)
    return tuple(missing)


def _paths(argument: str) -> tuple[Path, ...]:
    """The mapping files that an argument names: files, shipped mappings, or `all` of the installed ones."""
    paths: list[Path] = []
    for name in argument.split(","):
        if name == ALL:
            installed = installed_references()
            if not installed:
                raise HapaxError(
                    "No data of a shipped reference is installed. Run `pip install 'hapax-kb[references]'`."
                )
            paths += [SHIPPED / f"{known}.yaml" for known in installed]
        elif name in shipped_names():
            paths.append(SHIPPED / f"{name}.yaml")
        elif Path(name).is_file():
            paths.append(Path(name).absolute())
        else:
            known = ", ".join((*shipped_names(), ALL))
            raise HapaxError(
                f"reference:{name}: there is no such file, and no such mapping ships. Name a file or {known}."
            )
    return tuple(dict.fromkeys(paths))


def _installed(model: str, argument: str) -> tuple[Path, ...]:
    """The mapping files that an argument names. Raises HapaxError if data of one is not installed."""
    paths = _paths(argument)
    for path in paths:
        mapping = read_mapping(path)
        if missing := _missing(mapping):
            remedy = mapping.remedy or "Install them"
            raise HapaxError(f"{model} needs {' and '.join(missing)}, not installed here. {remedy}.")
    return paths


def open_names(model: str, library: Library) -> ReferenceModel:
    """The reference of a model string, for the names of its types. Raises HapaxError if the rules use none of them."""
    kind, _, argument = model.partition(":")
    if kind != "reference" or not argument:
        raise HapaxError(f"{model} has no canonical names. Name a reference, such as reference:geo.")
    opened = open_reference(argument, _installed(model, argument), library)
    listed: dict[str, None] = {}
    for reference in opened.references:
        listed.update(dict.fromkeys(reference.mapping.types))
    if not any(map(opened.names_type, _argument_types(library))):
        raise HapaxError(
            f"{model} has names of {', '.join(listed) or 'no type'}, of which the rules have no argument. "
            "Declare such a type in the rules, or name another reference."
        )
    return opened


def _open(request: ModelRequest) -> ReferenceModel:
    library = request.options.library
    if library is None:
        raise HapaxError(f"{request.model} needs rules, whose predicates its tables fill. Name a rule file.")
    paths = _installed(request.model, request.argument)
    model = open_reference(request.argument, paths, library)
    for reference in model.references:
        # Of several mappings, some may have no predicate of these rules.
        if reference.mapping.predicates and not reference.predicates and len(paths) == 1:
            listed = ", ".join(reference.mapping.predicates)
            raise HapaxError(f"{request.model}: the rules use none of its predicates ({listed}). Name rules that do.")
    return model


BACKEND = Backend(
    open=_open,
    argument="FILE",
    roles=ALL_ROLES,
    abilities=f"tables by a mapping file, or {', '.join((*shipped_names(), ALL))}: true, false or not covered",
    price=FREE,
)
