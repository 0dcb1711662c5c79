"""Datasets like LINT from a knowledge base.

`dataset_rows.py` chooses statements and makes their rows, `columns.py` has the tables, `formats.py` the formats and the
card, and `writing.py` runs these in turn.
"""
