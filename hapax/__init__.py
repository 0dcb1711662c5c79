"""Hapax: a logic-programming knowledge engine for the long tail of what language models know.

Everything that a script or a notebook needs is here; `docs/python.md` shows it at work. Nothing below prints or exits.

    rules = hapax.load_rules("my.rules")
    with hapax.KnowledgeBase("my.db") as kb:
        hapax.search(rules, kb, hapax.open_models("embedded"))
        print(hapax.query("is_not_able_to_eat(tom, Dish)", rules, kb, assume=["is_allergic_to(tom, shellfish)"]).rows)

Names are loaded when they are first used, so that `import hapax` costs next to nothing. Modules below `hapax` may move
between versions; these names stay.
"""

from __future__ import annotations

from pathlib import Path

import lazy_loader

# In a checkout the rooms are links in this folder. A zip archive, or git with core.symlinks=false, turns links into
# text files, `cli.py` among them, so the folder above, where the rooms are, comes first then.
_FOLDER = Path(__file__).resolve().parent
if not (_FOLDER / "engine").is_dir():
    __path__.insert(0, str(_FOLDER.parent))

# The names, each with the module that defines it, stand in __init__.pyi.
_attribute, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> object:
    """A name of the front door. Raises ExtraMissing if its module needs a library that is not installed."""
    from hapax.grammar.extras import extras_named

    with extras_named():
        return _attribute(name)
