"""Shared by several contracts: no settings of this machine's user, and a small world that was searched."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from money_fixture import copied, search_world


@pytest.fixture(scope="session", autouse=True)
def _no_settings_of_the_user() -> Iterator[None]:
    """Another machine's key, server and files are none of the tests'."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "HAPAX_ALIASES", "HAPAX_DB", "HAPAX_CONFIG"):
            patch.delenv(name, raising=False)
        yield


@pytest.fixture(scope="session")
def searched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A knowledge base after a search of the small world, beside its rules and script; nobody may change it."""
    return search_world(tmp_path_factory.mktemp("searched"))


@pytest.fixture
def database(searched: Path, tmp_path: Path) -> Path:
    """A copy of `searched` to work on."""
    return copied(searched, tmp_path / "kb.db")
