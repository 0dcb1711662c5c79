"""Datasets like LINT from a knowledge base.

`selection.py` chooses statements, `rows.py` makes their rows, the sinks of `formats.py` write them, and `build.py` runs
these in turn.
"""
