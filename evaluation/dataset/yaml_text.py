"""YAML as other programs read it: the card's head, and the harness's tasks with their `!function` tags."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml


class Function(str):
    """A function of a Python file beside the YAML: `utils.load`."""

    __slots__ = ()


def yaml_text(tree: Mapping[str, Any]) -> str:
    """The tree as block YAML, keys in the order given."""
    return str(yaml.dump(tree, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120))


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, _: Any) -> bool:
        """Equal parts are written out, for people and for readers that know no anchors."""
        return True


def _tagged(dumper: yaml.SafeDumper, name: Function) -> yaml.ScalarNode:
    return dumper.represent_scalar("!function", str(name))


_Dumper.add_representer(Function, _tagged)
