"""The models: they propose and score, and hold no thresholds.

Start at `protocols.py` (the roles) and `registry.py` (model strings). `calls.py` keeps the journal and the budget,
`answers.py` turns replies into values, `prompts.py` holds the wordings; `backends/` and `embedded/` run real models,
`scripted.py` and `simulated.py` stand in for them.
"""
