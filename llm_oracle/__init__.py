"""The models: they propose and score, and hold no thresholds.

Start with `protocols.py` (the roles), `backend.py` (a kind of model) and `registry.py` (model strings). `calls.py`
wraps models so that their calls go through `journal.py` within `budget.py`. `prompts.py` holds the wordings,
`answers.py` parses replies. `backends/` and `embedded/` run real models; `scripted.py` and `simulated.py` replace them
in tests.
"""
