"""Datasets like LINT from a knowledge base.

`selection.py` chooses statements, `rows.py` makes their rows, `sinks.py` has the formats and the card, and `build.py`
runs these in turn.
"""
