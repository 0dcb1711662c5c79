"""Roots and seals: a change of any row shows, with the run that it belongs to."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from cli_fixture import invoke

import hapax
from hapax.grammar.errors import HapaxError
from hapax.kb import seals, system
from hapax.kb.records import Distribution, FactRecord, RunRecord, Source, StatementRecord
from hapax.kb.roots import merkle_root, roots_of
from hapax.kb.store import KnowledgeBase

TYPES = ("City",)


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """A file with the facts of two runs and a given one."""
    path = tmp_path / "kb.db"
    with KnowledgeBase(path) as kb:
        for run in ("first", "second"):
            kb.start_run(RunRecord(run, "search", {}, run, "2026-01-01"))
            kb.add_facts([FactRecord("is_old", (f"city of {run}",), TYPES, Source.MODEL, 0.9, None, run)])
        kb.add_facts([FactRecord("is_old", ("Troy",), TYPES, Source.GIVEN)])
    return path


@pytest.fixture
def key(tmp_path: Path) -> Path:
    """A new SSH key."""
    path = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "ada", "-f", str(path)], check=True)
    return path


def signers(key: Path, name: str) -> Path:
    path = key.with_name(f"signers of {name}")
    path.write_text(f"{name} {key.with_suffix('.pub').read_text()}")
    return path


def change(path: Path, sql: str) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(sql)


def damages(database: Path, *options: object) -> list[tuple[str, str]]:
    result = invoke("verify", "--db", database, *options, "--json")
    found = json.loads(result.stdout)["damages"]
    assert result.exit_code == (1 if found else 0)
    return [(damage["row"], damage["reason"]) for damage in found]


def test_a_merkle_root_is_that_of_rfc_6962() -> None:
    """Roots of 0, 1, 3 and 7 leaves, taken from the test vectors of Certificate Transparency."""
    leaves = [bytes.fromhex(text) for text in ("", "00", "10", "2021", "3031", "40414243", "5051525354555657")]
    hashed = [hashlib.sha256(b"\0" + leaf).digest() for leaf in leaves]

    assert merkle_root([]) == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    assert merkle_root(hashed[:1]) == "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d"
    assert merkle_root(hashed[:3]) == "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77"
    assert merkle_root(hashed[:7]) == "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c"


def test_roots_depend_on_rows_alone(database: Path, tmp_path: Path) -> None:
    """A backup, and a file with the same rows in another order, have the same roots."""
    hapax.backup(database, tmp_path / "copy.db")
    other = tmp_path / "other.db"
    with KnowledgeBase(other) as kb:
        hapax.merge(kb, database)
    with KnowledgeBase(database) as kb, KnowledgeBase(tmp_path / "copy.db") as copy, KnowledgeBase(other) as merged:
        assert roots_of(kb) == roots_of(copy) == roots_of(merged)
        assert [run.run for run in roots_of(kb).runs] == ["", "first", "second"]


def test_statements_and_proofs_belong_to_their_run(database: Path) -> None:
    """A statement has two rows in the root of its run, itself and its proof, and none elsewhere."""
    with KnowledgeBase(database) as kb:
        before = {run.run: run.rows for run in roots_of(kb).runs}
        values = (("A", "Troy"),)
        kb.add_statements(
            [
                StatementRecord(
                    "old", Distribution.HEAD, "second", values, "Troy is old", "Troy fell", "", {"by": "fact"}
                )
            ]
        )
        after = {run.run: run.rows for run in roots_of(kb).runs}

    assert after == {**before, "second": before["second"] + 2}


def test_a_sealed_file_is_checked(database: Path, key: Path) -> None:
    """Sealing prints the root and the key, and the check finds both as they were, by others' tools, too."""
    sealed = invoke("verify", "--db", database, "--seal", key).stdout
    with (database.parent / "kb.db.seal").open() as text:
        command = ["ssh-keygen", "-Y", "check-novalidate", "-n", "hapax", "-s", str(database) + ".seal.sig"]
        said = subprocess.run(command, stdin=text, capture_output=True, check=True, text=True).stdout

    assert invoke("verify", "--db", database).stdout == sealed
    assert sealed.splitlines()[2].removeprefix("sealed by ") in said
    assert "ada, ED25519 key" in invoke("verify", "--db", database, "--signers", signers(key, "ada")).stdout


@pytest.mark.parametrize(
    ("sql", "run"),
    [
        ("UPDATE facts SET probability = 1.0 WHERE run_id = 'second'", "second"),
        ("DELETE FROM facts WHERE run_id = 'first'", "first"),
        ("UPDATE runs SET command = 'import' WHERE id = 'first'", "first"),
        ("UPDATE facts SET types = '[\"Town\"]' WHERE source = 'given'", "rows of no run"),
    ],
)
def test_a_change_that_no_identity_shows_is_told_by_its_run(database: Path, key: Path, sql: str, run: str) -> None:
    """A changed probability and a deleted row belong to no identity, and break the seal of their run."""
    invoke("verify", "--db", database, "--seal", key)
    change(database, sql)

    assert [row for row, _ in damages(database)] == [run]


def test_a_new_run_is_not_in_the_seal(database: Path, key: Path) -> None:
    """Rows that were added since are told, and sealing again takes them in."""
    invoke("verify", "--db", database, "--seal", key)
    with KnowledgeBase(database) as kb:
        kb.start_run(RunRecord("third", "search", {}, "third", "2026-01-02"))

    assert damages(database) == [("third", "it is not in the seal, with 1 rows")]
    invoke("verify", "--db", database, "--seal", key)
    assert damages(database) == []


def test_a_forged_seal_is_refused(database: Path, key: Path, tmp_path: Path) -> None:
    """A changed seal, another's seal and a lost one are damages where a file of signers is named."""
    invoke("verify", "--db", database, "--seal", key)
    own = signers(key, "ada")
    seal = tmp_path / "kb.db.seal"
    text = seal.read_text()
    change(database, "UPDATE facts SET probability = 1.0")
    with KnowledgeBase(database) as kb:
        seal.write_text(roots_of(kb).text)
    assert "no signature of kb.db.seal" in damages(database)[0][1]

    seal.write_text(text.replace("run ", "ran ", 1))
    assert "this is no seal" in damages(database)[0][1]

    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / "other")], check=True)
    invoke("verify", "--db", database, "--seal", tmp_path / "other")
    assert damages(database) == []
    assert "is not in" in damages(database, "--signers", own)[0][1]

    seal.unlink()
    assert damages(database, "--signers", own) == [("", "it has no seal")]


def test_the_commands_of_the_page_work(database: Path) -> None:
    """Every line of the section on seals ends with exit code 0, and OpenSSH finds Ada's signature good."""
    page = (Path(__file__).parent.parent / "docs" / "faults.md").read_text("utf-8")
    section = page.partition("\n## Seals\n")[2].partition("\n## ")[0]
    lines = "".join(re.findall(r"^```\n(.*?)^```$", section, re.DOTALL | re.MULTILINE))
    database.rename(database.with_name("hapax.db"))
    script = f'set -e\nhapax() {{ "{sys.executable}" -m hapax.cli "$@"; }}\n{lines}'
    ended = subprocess.run(["sh", "-c", script], cwd=database.parent, capture_output=True, check=False, text=True)

    assert ended.returncode == 0, ended.stderr
    assert 'Good "hapax" signature for ada' in ended.stdout


def test_a_damaged_file_is_not_sealed(database: Path, key: Path) -> None:
    """Sealing verifies first."""
    change(database, "UPDATE facts SET arguments = '[\"Rome\"]' WHERE source = 'given'")
    result = invoke("verify", "--db", database, "--seal", key)

    assert result.exit_code == 1
    assert "it is damaged and was not sealed" in result.stderr
    assert not (database.parent / "kb.db.seal").exists()


def test_sealing_without_key_or_program_says_so(
    database: Path, key: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A missing key and a missing ssh-keygen end with the remedy, and leave nothing behind."""
    with KnowledgeBase(database, read_only=True) as kb, pytest.raises(HapaxError, match="ssh-keygen -t ed25519"):
        hapax.seal(kb, tmp_path / "none")
    monkeypatch.setenv("PATH", str(tmp_path))
    with KnowledgeBase(database, read_only=True) as kb, pytest.raises(HapaxError, match="Install OpenSSH"):
        hapax.seal(kb, key)

    assert not [path for path in tmp_path.iterdir() if "seal" in path.name or path.name.startswith(".")]
    assert shutil.which("ssh-keygen") is None


def test_a_seal_that_cannot_be_written_or_has_no_signers_is_refused(
    database: Path, key: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error names the file, and leaves nothing beside the knowledge base."""
    with KnowledgeBase(database, read_only=True) as kb:
        roots = roots_of(kb)
    with pytest.raises(HapaxError, match=r"none/kb\.seal: the seal cannot be written \(.*\)\.$"):
        seals.sign(roots, tmp_path / "none" / "kb.seal", key)
    seal = tmp_path / "kb.seal"
    written = seals.sign(roots, seal, key)
    with pytest.raises(HapaxError, match=r"nobody: there is no such file of signers\. Each of its lines is `NAME KEY"):
        seals.read(seal, tmp_path / "nobody")

    assert written.roots == roots
    before = sorted(tmp_path.iterdir())

    def refuse(source: Path, target: Path) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(system, "rename", refuse)
    with pytest.raises(HapaxError, match=r"the seal cannot be written \(Read-only file system\)\.$"):
        seals.sign(roots, tmp_path / "other.seal", key)
    assert sorted(tmp_path.iterdir()) == before
