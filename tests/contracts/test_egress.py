"""With `--offline` the command line connects to this machine alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_fixture import invoke

import hapax

ROOT = Path(__file__).parents[2]


def test_offline_refuses_servers_elsewhere() -> None:
    """A model on another machine is refused before anything is sent; one on this machine is not."""
    found = invoke("search", "-m", "openai:m@http://models.example/v1", "--offline")

    assert found.exit_code == 1
    assert "models.example" in found.output
    assert "--offline" in found.output
    with pytest.raises(hapax.HapaxError, match="ConnectError"):
        hapax.open_models("openai:m@http://127.0.0.1:9/v1", offline=True)


@pytest.mark.embedded
def test_offline_loads_checkpoints_of_this_machine_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A checkpoint's folder is loaded, and a name that is not cached is refused without a request."""
    pytest.importorskip("transformers")
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    folder = ROOT / "llm_oracle" / "embedded" / "model"

    assert hapax.open_models(f"hf:{folder}", offline=True).critic.identity.name.startswith("hf/")
    with pytest.raises(hapax.HapaxError, match="nobody/nothing"):
        hapax.open_models("hf:nobody/nothing", offline=True)
