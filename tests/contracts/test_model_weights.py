"""Weights of models are data: nothing that loads them runs a program that came with them."""

from __future__ import annotations

import ast
import shutil
from hashlib import sha256
from pathlib import Path

import pytest

import hapax

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("api", "benchmarks", "commands", "engine", "evaluation", "grammar", "kb", "llm_oracle", "scripts", "tools")
EMBEDDED = ROOT / "llm_oracle" / "embedded" / "model"


def _calls() -> list[tuple[str, ast.Call]]:
    calls = []
    for room in ROOMS:
        for path in sorted((ROOT / room).rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            for node in ast.walk(ast.parse(text)) if "torch.load" in text else ():
                if isinstance(node, ast.Call):
                    calls.append((f"{path.relative_to(ROOT)}:{node.lineno}", node))
    return calls


def test_no_code_of_a_model_is_ever_trusted() -> None:
    """No source names `trust_remote_code`, so transformers keeps its default, which runs no code of a model."""
    named = [path for room in ROOMS for path in (ROOT / room).rglob("*.py") if "trust_remote_code" in path.read_text()]
    assert named == []


def test_torch_reads_tensors_alone() -> None:
    """Any `torch.load` is given `weights_only=True`, which refuses every other object of a pickle."""
    for place, call in ((place, call) for place, call in _calls() if ast.unparse(call.func) == "torch.load"):
        settings = {keyword.arg: ast.unparse(keyword.value) for keyword in call.keywords}
        assert settings.get("weights_only") == "True", place


@pytest.mark.embedded
def test_pickled_weights_are_refused(tmp_path: Path) -> None:
    """A folder whose weights are a pickle is refused with the remedy, and the same weights as safetensors load."""
    torch = pytest.importorskip("torch")
    pytest.importorskip("transformers")
    from safetensors.torch import load_file

    folder = tmp_path / "model"
    shutil.copytree(EMBEDDED, folder)
    assert hapax.open_models(f"hf:{folder}")
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    (folder / "SHA256SUMS").unlink()
    with pytest.raises(hapax.HapaxError, match="with weights as safetensors"):
        hapax.open_models(f"hf:{folder}")


@pytest.mark.embedded
def test_weights_with_another_hash_are_refused(tmp_path: Path) -> None:
    """A folder whose weights do not have the hash of its SHA256SUMS is refused, with both hashes."""
    pytest.importorskip("torch")
    pytest.importorskip("transformers")

    folder = tmp_path / "model"
    shutil.copytree(EMBEDDED, folder)
    weights = folder / "model.safetensors"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    with pytest.raises(hapax.HapaxError, match=r"\w{16}.*\w{16}"):
        hapax.open_models(f"hf:{folder}")
    (folder / "SHA256SUMS").write_text(f"{'0' * 64}  ../other.safetensors\n", encoding="utf-8")
    with pytest.raises(hapax.HapaxError, match="SHA256SUMS:1 is malformed"):
        hapax.open_models(f"hf:{folder}")


@pytest.mark.parametrize("folder", ["embedded/model", "trained_critic"])
def test_shipped_weights_have_their_hashes(folder: str) -> None:
    """The SHA256SUMS of each shipped folder names all its weights, and the files have these hashes."""

    shipped = ROOT / "llm_oracle" / folder
    listed = {line.split("  ")[1] for line in (shipped / "SHA256SUMS").read_text(encoding="utf-8").splitlines()}
    assert listed == {path.name for path in shipped.glob("*.safetensors")}
    for line in (shipped / "SHA256SUMS").read_text("utf-8").splitlines():
        told, name = line.split("  ")
        assert sha256((shipped / name).read_bytes()).hexdigest() == told
