"""The model string `reference:FILE`: reference tables as knowledge model, critic and ranker."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from hapax.grammar.errors import HapaxError
from hapax.grammar.rules import Library
from hapax.llm_oracle.backend import ALL_ROLES, Backend, ModelRequest
from hapax.llm_oracle.budget import FREE
from hapax.llm_oracle.references.mapping import ALL, SHIPPED, Mapping, read_mapping, shipped_names
from hapax.llm_oracle.references.model import ReferenceModel, open_reference


def installed_references() -> tuple[str, ...]:
    """Names of the shipped mappings whose data is installed."""
    return tuple(name for name in shipped_names() if not _missing(read_mapping(SHIPPED / f"{name}.yaml")))


def covering_references(library: Library) -> tuple[str, ...]:
    """Names of the installed mappings with a predicate or type that the library uses."""
    names = []
    for name in installed_references():
        model = open_reference(name, (SHIPPED / f"{name}.yaml",), library)
        if model.identity.knows:
            names.append(name)
    return tuple(names)


def _missing(mapping: Mapping) -> tuple[str, ...]:
    """Modules and files that a mapping needs and that are not installed."""
    missing = []
    for need in mapping.needs:
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


def _open(request: ModelRequest) -> ReferenceModel:
    library = request.options.library
    if library is None:
        raise HapaxError(f"{request.model} needs rules, whose predicates its tables fill. Name a rule file.")
    paths = _paths(request.argument)
    for path in paths:
        mapping = read_mapping(path)
        if missing := _missing(mapping):
            remedy = mapping.remedy or "Install them"
            raise HapaxError(f"{request.model} needs {' and '.join(missing)}, not installed here. {remedy}.")
    model = open_reference(request.argument, paths, library)
    for reference in model.references:
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
