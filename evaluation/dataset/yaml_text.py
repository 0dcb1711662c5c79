"""YAML for other programs: the head of a card, and tasks of the harness with their `!function` tags."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml


class Function(str):
    """Name of a function in a Python file beside the YAML, such as `utils.load`."""

    __slots__ = ()


def yaml_text(tree: Mapping[str, Any]) -> str:
    """The tree as YAML in block style, with keys in the given order."""
    return str(yaml.dump(tree, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120))


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, _: Any) -> bool:
        """Write equal parts out instead of as anchors, which some readers do not support."""
        return True


# A SafeDumper refuses subclasses of str that have no representer of their own.
_Dumper.add_representer(Function, lambda dumper, name: dumper.represent_scalar("!function", str(name)))
