"""A picture of what commands print, for the pages: `python -m scripts.terminal_picture "hapax search" > picture.svg`.

The commands run here, in the shell. The picture names no font that would have to be fetched.
"""

from __future__ import annotations

import subprocess
import sys

from rich.console import Console
from rich.terminal_theme import DEFAULT_TERMINAL_THEME

WIDTH = 110
_FORMAT = """\
<svg class="{unique_id}" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: monospace; font-size: {char_height}px; line-height: {line_height}px; }}
{styles}
</style>
<defs><clipPath id="{unique_id}-clip-terminal"><rect width="{terminal_width}" height="{terminal_height}"/></clipPath>
{lines}</defs>
<rect width="100%" height="100%" rx="8" fill="#ffffff" stroke="#888888"/>
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}<g class="{unique_id}-matrix">
{matrix}</g></g>
</svg>
"""


def terminal_picture(commands: list[str]) -> str:
    """An SVG of the commands and what they print to stdout. Raises CalledProcessError for one that fails."""
    console = Console(record=True, width=WIDTH, file=sys.stderr, emoji=False, markup=False, highlight=False)
    for command in commands:
        printed = subprocess.run(command, shell=True, check=True, capture_output=True, text=True).stdout  # noqa: S602
        console.print(f"$ {command}", style="bold")
        console.print(printed.rstrip())
        console.print()
    return console.export_svg(theme=DEFAULT_TERMINAL_THEME, code_format=_FORMAT, unique_id="hapax")


if __name__ == "__main__":
    sys.stdout.write(terminal_picture(sys.argv[1:]))
