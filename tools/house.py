"""Figures of the code, for comparison before and after a change: `python -m tools.house [FOLDER ...]`.

Prints lines by room, lengths and parameters of functions, names that say nothing, class names defined twice, comments,
comprehensions, import circles and, with `--wheel`, the names that the wheel installs. With `--places` it also lists
where each vague name, riddling docstring and repeated class name stands.
"""

from __future__ import annotations

import argparse
import ast
import io
import subprocess
import sys
import tempfile
import tokenize
import zipfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import networkx as nx
import numpy as np

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("grammar", "kb", "llm_oracle", "engine", "evaluation", "api", "commands", "cli.py")
VAGUE = frozenset({"one", "told", "held", "several", "each", "other", "thing", "what"})
RIDDLES = frozenset({"What", "Whether", "How", "Whose"})
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


@dataclass
class Figures:
    """Counts over some files. Places are `path:line name`."""

    lines: Counter[str] = field(default_factory=Counter)
    code_lines: int = 0
    comment_lines: int = 0
    function_lines: list[int] = field(default_factory=list)
    longest: tuple[int, str] = (0, "")
    parameters: list[int] = field(default_factory=list)
    many_parameters: list[str] = field(default_factory=list)
    vague: list[str] = field(default_factory=list)
    riddles: list[str] = field(default_factory=list)
    docstrings: int = 0
    comprehensions: int = 0
    nested_comprehensions: int = 0
    classes: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    private_functions: int = 0
    private_used_once: int = 0

    @property
    def repeated_classes(self) -> dict[str, list[str]]:
        return {name: places for name, places in sorted(self.classes.items()) if len(places) > 1}


def measure(files: Sequence[Path]) -> Figures:
    """The figures of the files."""
    figures = Figures()
    for path in files:
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text)
        figures.lines[path.relative_to(ROOT).parts[0]] += len(text.splitlines())
        tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
        _count_lines(figures, tokens)
        _count_nodes(figures, tree, path.relative_to(ROOT))
        _count_private_functions(figures, tree, tokens)
    return figures


def _count_lines(figures: Figures, tokens: Sequence[tokenize.TokenInfo]) -> None:
    comments, code = set[int](), set[int]()
    for token in tokens:
        if token.type == tokenize.COMMENT:
            comments.add(token.start[0])
        elif token.type in (tokenize.NAME, tokenize.OP, tokenize.NUMBER, tokenize.STRING):
            code.update(range(token.start[0], token.end[0] + 1))
    figures.comment_lines += len(comments)
    figures.code_lines += len(code)


def _count_nodes(figures: Figures, tree: ast.Module, path: Path) -> None:
    for node in ast.walk(tree):
        place = f"{path}:{getattr(node, 'lineno', 1)}"
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            _count_function(figures, node, place)
        elif isinstance(node, ast.ClassDef):
            figures.classes[node.name].append(place)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in VAGUE:
            figures.vague.append(f"{place} {node.id}")
        elif isinstance(node, COMPREHENSIONS):
            figures.comprehensions += 1
            inner = [child for child in ast.walk(node) if isinstance(child, COMPREHENSIONS)]
            figures.nested_comprehensions += len(inner) > 1 or len(node.generators) > 1
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Module)):
            docstring = ast.get_docstring(node)
            figures.docstrings += docstring is not None
            if docstring and docstring.split(maxsplit=1)[0] in RIDDLES:
                figures.riddles.append(f"{place} {docstring.splitlines()[0]}")


def _count_function(figures: Figures, node: ast.FunctionDef | ast.AsyncFunctionDef, place: str) -> None:
    length = (node.end_lineno or node.lineno) - node.lineno + 1
    arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    count = len([argument for argument in arguments if argument.arg not in ("self", "cls")])
    figures.function_lines.append(length)
    figures.longest = max(figures.longest, (length, f"{place} {node.name}"))
    figures.parameters.append(count)
    if count > 6:
        figures.many_parameters.append(f"{place} {node.name} ({count})")
    if not node.name.startswith("__"):  # `__eq__(self, other)` is Python's own word
        figures.vague.extend(f"{place} {argument.arg}" for argument in arguments if argument.arg in VAGUE)


def _count_private_functions(figures: Figures, tree: ast.Module, tokens: Sequence[tokenize.TokenInfo]) -> None:
    used = Counter(token.string for token in tokens if token.type == tokenize.NAME)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name.startswith("_") and not node.name.startswith("__"):
            figures.private_functions += 1
            figures.private_used_once += used[node.name] == 2  # its definition and one use


def import_circles(files: Sequence[Path]) -> list[list[str]]:
    """Groups of modules that import each other, imports in functions and for type checking included."""
    modules = {_module_name(path): path for path in files}
    graph: nx.DiGraph[str] = nx.DiGraph()
    for name, path in modules.items():
        for imported in _imported_names(ast.parse(path.read_text(encoding="utf-8"))):
            target = imported if imported in modules else imported.rpartition(".")[0]
            if target in modules and target != name:
                graph.add_edge(name, target)
    return sorted(sorted(group) for group in nx.strongly_connected_components(graph) if len(group) > 1)


def _module_name(path: Path) -> str:
    return ".".join(("hapax", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__")


def _imported_names(tree: ast.Module) -> Iterator[str]:
    """Names that a file imports anywhere: an import in a function makes a circle for a reader, too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def wheel_names() -> list[str]:
    """Top-level names that the wheel of the tracked files installs."""
    with tempfile.TemporaryDirectory() as folder:
        # Built from a copy: a build leaves its files in the tree, and the next one would take them along.
        source = Path(folder) / "source"
        subprocess.run(["git", "-C", ROOT, "checkout-index", "--all", f"--prefix={source}/"], check=True)
        command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, str(source)]
        subprocess.run(command, check=True)
        (wheel,) = Path(folder).glob("*.whl")
        names = {name.split("/")[0] for name in zipfile.ZipFile(wheel).namelist()}
    return sorted(name for name in names if not name.endswith(".dist-info"))


def main() -> None:
    """Print the figures of the folders, or of all rooms."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "folders", nargs="*", default=list(ROOMS), help="rooms, folders or files; all rooms if left out"
    )
    parser.add_argument("--places", action="store_true", help="list where each fault stands")
    parser.add_argument("--wheel", action="store_true", help="build the wheel and list the names that it installs")
    options = parser.parse_args()
    paths = [ROOT / name for name in options.folders]
    files = sorted(file for path in paths for file in (path.rglob("*.py") if path.is_dir() else [path]))
    figures = measure(files)
    lengths, parameters = figures.function_lines or [0], figures.parameters or [0]
    print("lines                          ", ", ".join(f"{room} {count}" for room, count in figures.lines.items()))
    print("function lines, median/90 %/max", f"{np.median(lengths):g}/{np.quantile(lengths, 0.9):g}/{max(lengths)}")
    print("longest function               ", figures.longest[1])
    print("parameters, 90 %/max           ", f"{np.quantile(parameters, 0.9):g}/{max(parameters)}")
    outside = [place for place in figures.many_parameters if not place.startswith("commands/")]
    print("more than 6, outside commands  ", len(outside), *outside)
    print("bindings of vague names        ", len(figures.vague))
    print("docstrings that riddle         ", f"{len(figures.riddles)} of {figures.docstrings}")
    print("class names defined twice      ", len(figures.repeated_classes))
    print("comments per code line         ", f"{figures.comment_lines / figures.code_lines:.1%}")
    per_thousand = 1000 * figures.comprehensions / sum(figures.lines.values())
    print("comprehensions per 1000 lines  ", f"{per_thousand:.0f}, nested {figures.nested_comprehensions}")
    print("private functions used once    ", f"{figures.private_used_once} of {figures.private_functions}")
    print("import circles                 ", import_circles(files))
    if options.wheel:
        print("wheel installs                 ", *wheel_names())
    if options.places:
        print(*figures.vague, *figures.riddles, *figures.repeated_classes.items(), sep="\n")


if __name__ == "__main__":
    main()
