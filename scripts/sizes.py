"""Prints the size of each room: Python statements, nodes of the syntax tree and files; then words of the pages.

    python -m scripts.sizes

Statements and nodes are counted by `ast`, so that dense lines gain nothing.
"""

from __future__ import annotations

import ast
import subprocess
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def tracked() -> list[Path]:
    """The repository's files, relative to its root, without links."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    paths = [Path(name) for name in listed.split("\0") if name]
    return [path for path in paths if (ROOT / path).is_file() and not (ROOT / path).is_symlink()]


def main() -> None:
    """Print the table."""
    paths = tracked()
    files = Counter(path.parts[0] for path in paths)
    statements: Counter[str] = Counter()
    nodes: Counter[str] = Counter()
    for path in paths:
        if path.suffix == ".py":
            tree = list(ast.walk(ast.parse((ROOT / path).read_text(encoding="utf-8"))))
            statements[path.parts[0]] += sum(isinstance(node, ast.stmt) for node in tree)
            nodes[path.parts[0]] += len(tree)
    print(f"{'room':14}{'statements':>12}{'nodes':>10}{'files':>8}")
    for room in sorted(statements):
        print(f"{room:14}{statements[room]:12,}{nodes[room]:10,}{files[room]:8,}")
    shipped = [room for room in statements if room != "tests"]
    own = sum(statements[room] for room in shipped), sum(nodes[room] for room in shipped)
    print(f"{'without tests':14}{own[0]:12,}{own[1]:10,}{len(paths):8,} files in all")
    pages = [path for path in paths if path.suffix == ".md" and path.parts[0] in ("README.md", "SECURITY.md", "docs")]
    words = sum(len((ROOT / page).read_text(encoding="utf-8").split()) for page in pages)
    print(f"words of README.md, SECURITY.md and docs: {words:,}")


if __name__ == "__main__":
    main()
