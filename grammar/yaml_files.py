"""YAML files, read so that a few lines cannot stand for millions of values."""

from __future__ import annotations

from typing import Any

import yaml

MOST_MERGED = 100_000
"""Fields that the merges (`<<`) of a file may bring together; each level of them may multiply those below it."""


class _Loader(yaml.SafeLoader):
    """Values that anchors name are one object each, however often they are named; merged fields are copied."""

    _merged = 0

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Put the fields of merged mappings into this one. Raises YAMLError if they become too many."""
        super().flatten_mapping(node)
        self._merged += len(node.value)
        if self._merged > MOST_MERGED:
            problem = f"the merges (<<) bring together more than {MOST_MERGED} fields"
            raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark)


def read_yaml(text: str) -> Any:
    """The content of a YAML file. Raises yaml.YAMLError, and ValueError for values that Python cannot hold."""
    try:
        return yaml.load(text, Loader=_Loader)  # noqa: S506  # a SafeLoader
    except RecursionError:
        raise yaml.YAMLError("nested too deeply") from None
