"""Child processes that import nothing from the working folder and inherit nothing of the user's environment."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import hapax

KEPT_VARIABLES = (
    "PATH",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TMPDIR",
    "LD_LIBRARY_PATH",
    "DYLD_LIBRARY_PATH",
    "LIBSWIPL_PATH",
    "SWI_HOME_DIR",
)
"""The variables that finding and starting SWI-Prolog may need. All others, API keys among them, stay in the parent."""

IMPORT_ROOT = Path(hapax.__file__).resolve().parent.parent
"""The folder that `hapax` is imported from: the checkout, or site-packages."""

# `hapax` is loaded from the parent's own copy, not searched for: an older one may be installed beside a checkout.
_START = """
import json, sys
from importlib import machinery, util
root, path = json.loads(sys.argv.pop(1))
sys.path += [entry for entry in path if entry not in sys.path]
spec = machinery.PathFinder.find_spec("hapax", [root])
sys.modules["hapax"] = util.module_from_spec(spec)
spec.loader.exec_module(sys.modules["hapax"])
import runpy
runpy.run_module(sys.argv.pop(1), run_name="__main__", alter_sys=True)
"""


def child_command(module: str, *arguments: str) -> list[str]:
    """The command that runs a module of Hapax in a Python that imports nothing from the working folder.

    `-I` keeps the working folder, PYTHON* variables and the user's site folder off the child's path. The parent's path
    follows after, for packages that are found in no other way, such as pyswip in the user's site folder.
    """
    # Without the working folder, where a `json.py` of the user's may lie. A relative entry means another folder after
    # each change of the working folder, so it goes as well.
    working_folder = Path.cwd()
    path = [entry for entry in sys.path if Path(entry).is_absolute() and Path(entry).resolve() != working_folder]
    place = json.dumps([str(IMPORT_ROOT), path])
    return [sys.executable, "-I", "-c", _START, place, module, *arguments]


def child_environment() -> dict[str, str]:
    """The environment of a child process: `KEPT_VARIABLES` of this process, and no configuration of the user's."""
    kept = {name: os.environ[name] for name in KEPT_VARIABLES if name in os.environ}
    return {**kept, "XDG_CONFIG_HOME": os.devnull}  # otherwise Prolog would load the user's init.pl
