"""Other programs that read what Hapax exports for them: the evaluation harness, and modules beside tasks."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from typing import Any


def python(place: Path, *words: object) -> str:
    """The output of another Python process, without network and with its caches in the test's folder."""
    offline = {"HF_HUB_OFFLINE": "1", "HF_HOME": str(place / "cache"), "OMP_NUM_THREADS": "1"}
    command, environment = [sys.executable, *map(str, words)], {**os.environ, **offline}
    done = subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def loaded(path: Path) -> Any:
    """A module that lies beside tasks."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
