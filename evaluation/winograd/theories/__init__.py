"""Abstraction with proofs: Winograd sentences read as typed atoms over abstract roles, and referents proved by Prolog.

`abstraction.py` takes the entities out, `patterns.py` (or, by a model, `mapping.py`) reads what the sentence states,
`proving.py` tries each candidate and `measure.py` counts. The theories are the `*.rules` files, the patterns the
`*.toml` files beside them.
"""
