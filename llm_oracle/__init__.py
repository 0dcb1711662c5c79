"""The models: they propose and score, and hold no thresholds.

Start with `protocols.py` (the roles), `backend.py` (a kind of model) and `registry.py` (model strings).
`journaled_models.py` sends the calls of models through `journal.py` within `budget.py`. `questions/` holds the
wordings, `reading/` parses replies. `backends/` and `embedded/` run models in this process, `servers/` asks those on
servers; `scripts/` replaces them in tests.
"""
