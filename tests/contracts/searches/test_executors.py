"""Searches on a cluster that cannot begin: what the command says, before anything is written."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from cli_fixture import invoke


def test_without_ray_the_command_says_how_to_install_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An executor that is not there is an error with its remedy, and no knowledge base is begun."""
    monkeypatch.setitem(sys.modules, "ray", None)
    result = invoke("search", "-m", "simulated", "--executor", "ray", "--db", tmp_path / "one.db")

    assert result.exit_code == 1
    assert "hapax-kb[ray]" in result.stderr
    assert not (tmp_path / "one.db").exists()


def test_a_queue_is_not_spread(tmp_path: Path) -> None:
    """--queue sends nothing, so that it does not go with an executor."""
    result = invoke("search", "--executor", "ray", "--queue", tmp_path / "q.jsonl")

    assert result.exit_code == 2
    assert "--queue" in result.stderr
