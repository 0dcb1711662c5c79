"""Other programs that read what Hapax exports for them: Inspect, the evaluation harness, and modules beside tasks."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

INSPECT = """
import sys
sys.path.insert(0, sys.argv[1])
import task
from inspect_ai import eval as run
from inspect_ai.model import ModelOutput, ModelUsage, get_model
reply = ModelOutput.from_content("mockllm/model", sys.argv[3])
reply.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
model = get_model("mockllm/model", custom_outputs=[reply] * 100)
(log,) = run(getattr(task, sys.argv[2])(), model=model, log_dir="logs", display="none")
scores = [(score.name, name, one.value) for score in log.results.scores for name, one in score.metrics.items()]
print(log.status, {f"{score}/{name}": value for score, name, value in scores})
"""
"""Tokens are told, for Inspect would download a tokenizer to count them."""


def python(place: Path, *words: object) -> str:
    """The output of another Python process, without network and with its caches in the test's folder."""
    offline = {"HF_HUB_OFFLINE": "1", "HF_HOME": str(place / "cache"), "OMP_NUM_THREADS": "1"}
    command, environment = [sys.executable, *map(str, words)], {**os.environ, **offline}
    done = subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def inspected(folder: Path, task: str, reply: str) -> str:
    """What Inspect measures of a model that always gives one reply, by score and metric."""
    return python(folder.parent, "-c", INSPECT, folder, task, reply)


def loaded(path: Path) -> Any:
    """A module that lies beside tasks."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
