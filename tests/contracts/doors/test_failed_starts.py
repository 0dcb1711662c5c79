"""A command that fails at its start leaves no file behind."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_fixture import invoke
from openai_fake import FakeServer

import hapax

RULES = """
oracle lies_in(City, Country): "[1] lies in [2]" / "[1] does not lie in [2]" / "does [1] lie in [2]?"
given visits(Person, Country): "[1] visits [2]" / "[1] does not visit [2]" / "does [1] visit [2]?"
@name sees
visits(Person X, Country L) & lies_in(City C, Country L) -> may_see(Person X, City C)
"""
NOWHERE = "openai:m@http://127.0.0.1:9/v1"
FAILING = {
    "search without a key": "search my.rules -m openai:gpt-4.1 --likelihood frequency",
    "search at a wrong URL": f"search my.rules -m {NOWHERE} --likelihood frequency",
    "search with an unknown model": "search my.rules -m nosuch:model",
    "search of an unknown rule": "search my.rules --rule nosuch -m simulated",
    "search with a missing file": "search my.rules -m scripted:nosuch.json",
    "a goal without a key": "query lies_in(X,italy) --ask --rules my.rules -m openai:gpt-4.1",
    "a goal at a wrong URL": f"query lies_in(X,italy) --ask --rules my.rules -m {NOWHERE}",
    "import of a missing file": "import nosuch.csv",
    "import of a faulty row": "import faulty.csv --rules my.rules",
    "merge of a missing file": "data merge nosuch.db",
    "an evaluation without a key": "evaluate instruct my.rules -m openai:gpt-4.1",
    "expansion without a key": "rules expand my.rules --rules my.rules --variable C -m openai:gpt-4.1 -o new.rules",
    "mining": "rules mine my.rules",
    "a plan": "plan my.rules -m nosuch:model",
    "an agent's server": "kb mcp --ask --max-calls 3 --rules my.rules -m openai:gpt-4.1",
    "a browser's server": "serve --ask --max-calls 3 --rules my.rules -m openai:gpt-4.1",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, with a file of rules and a file of facts of which one is faulty; there are no keys."""
    monkeypatch.chdir(tmp_path)
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "my.rules").write_text(RULES, "utf-8")
    (tmp_path / "faulty.csv").write_text("visits,ann,italy\nvisits,ann\n", "utf-8")
    return tmp_path


@pytest.mark.parametrize("command", FAILING.values(), ids=FAILING)
def test_a_failed_start_leaves_no_knowledge_base(command: str, folder: Path) -> None:
    """Neither the file nor one beside it is there, and a later command says that there is none."""
    before = sorted(path.name for path in folder.iterdir())
    failed = invoke(*command.split(), "--db", "new.db")

    assert failed.exit_code not in (0, 130), failed.output
    assert sorted(path.name for path in folder.iterdir()) == before
    asked = invoke("query", "lies_in(X, Y)", "--rules", "my.rules", "--db", "new.db")
    assert asked.exit_code != 0
    assert "new.db" in asked.output


def test_a_refused_key_leaves_no_knowledge_base(folder: Path) -> None:
    """A server that refuses every request has answered nothing that could be kept."""
    with FakeServer() as server:
        server.misbehave = lambda number, asked: (401, {"error": {"message": "bad key"}}, {})
        failed = invoke("search", "my.rules", "-m", f"openai:m@{server.url}", "--db", "new.db")

    assert failed.exit_code == 1, failed.output
    assert [path.name for path in folder.iterdir() if path.name.startswith("new.db")] == []


def test_a_file_with_something_in_it_stays(folder: Path) -> None:
    """Paid answers, and a knowledge base that was there before, outlive a failure."""
    hapax.KnowledgeBase("new.db").close()
    assert invoke("search", "my.rules", "-m", "nosuch:model", "--db", "new.db").exit_code == 1
    assert (folder / "new.db").exists()

    stopped = invoke("search", "my.rules", "-m", "simulated:1", "--max-calls", "3", "--db", "paid.db")
    assert stopped.exit_code == 3, stopped.output
    assert (folder / "paid.db").exists()


def test_another_process_keeps_its_file(folder: Path) -> None:
    """A file that somebody else has open is not taken away, though it is empty."""
    with hapax.KnowledgeBase("new.db"):
        failed = invoke("import", "nosuch.csv", "--db", "new.db")
        assert failed.exit_code == 2, failed.output
        assert (folder / "new.db").exists()
