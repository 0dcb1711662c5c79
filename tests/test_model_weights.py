"""Weights of models are data: nothing that loads them runs a program that came with them."""

from __future__ import annotations

import ast
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("api", "benchmarks", "commands", "engine", "evaluation", "grammar", "kb", "llm_oracle", "scripts", "tools")
EMBEDDED = ROOT / "llm_oracle" / "embedded" / "model"


def _calls() -> list[tuple[str, ast.Call]]:
    calls = []
    for room in ROOMS:
        for path in sorted((ROOT / room).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Call):
                    calls.append((f"{path.relative_to(ROOT)}:{node.lineno}", node))
    return calls


def test_no_code_of_a_model_is_ever_trusted() -> None:
    """No source names `trust_remote_code`, so transformers keeps its default, which runs no code of a model."""
    named = [path for room in ROOMS for path in (ROOT / room).rglob("*.py") if "trust_remote_code" in path.read_text()]
    assert named == []


def test_torch_reads_tensors_alone() -> None:
    """Each `torch.load` is given `weights_only=True`, which refuses every other object of a pickle."""
    loads = [(place, call) for place, call in _calls() if ast.unparse(call.func) == "torch.load"]
    assert loads
    for place, call in loads:
        settings = {keyword.arg: ast.unparse(keyword.value) for keyword in call.keywords}
        assert settings.get("weights_only") == "True", place


@pytest.mark.embedded
def test_pickled_weights_are_refused(tmp_path: Path) -> None:
    """A folder whose weights are a pickle is refused with the remedy, and the same weights as safetensors load."""
    torch = pytest.importorskip("torch")
    pytest.importorskip("transformers")
    from safetensors.torch import load_file

    from hapax.grammar.errors import HapaxError
    from hapax.llm_oracle.backends.loading import load_model

    folder = tmp_path / "model"
    shutil.copytree(EMBEDDED, folder)
    assert load_model(folder).network is not None
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    (folder / "SHA256SUMS").unlink()
    with pytest.raises(HapaxError, match="with weights as safetensors"):
        load_model(folder)


@pytest.mark.embedded
def test_weights_with_another_hash_are_refused(tmp_path: Path) -> None:
    """A folder whose weights do not have the hash of its SHA256SUMS is refused, with both hashes."""
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    from hapax.grammar.errors import HapaxError
    from hapax.llm_oracle.backends.loading import load_model
    from hapax.llm_oracle.backends.weight_hashes import SUMS_FILE

    folder = tmp_path / "model"
    shutil.copytree(EMBEDDED, folder)
    weights = folder / "model.safetensors"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    with pytest.raises(
        HapaxError, match=r"damaged or were changed: their SHA-256 is \w{16}\.\.\., and \w{16}\.\.\. stands in"
    ):
        load_model(folder)
    (folder / SUMS_FILE).write_text(f"{'0' * 64}  ../other.safetensors\n", encoding="utf-8")
    with pytest.raises(HapaxError, match="SHA256SUMS:1 is malformed"):
        load_model(folder)


@pytest.mark.parametrize("folder", ["embedded/model", "trained_critic"])
def test_shipped_weights_have_their_hashes(folder: str) -> None:
    """The SHA256SUMS of each shipped folder names all its weights, and the files have these hashes."""
    from hapax.llm_oracle.backends.weight_hashes import SUMS_FILE, check_sums

    shipped = ROOT / "llm_oracle" / folder
    listed = {line.split("  ")[1] for line in (shipped / SUMS_FILE).read_text(encoding="utf-8").splitlines()}
    assert listed == {path.name for path in shipped.glob("*.safetensors")}
    check_sums(shipped)
