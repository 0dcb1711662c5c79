"""Winograd schemas and their concept-reversed counterparts (CR-WSC).

`schema_files.py` reads them, `schema_asking.py` asks and scores, `schema_runs.py` stores what was asked, of which
`schema_tables.py` and `schema_cases.py` report; `generation.py` makes new ones, and `schema_export.py` is for others.
"""
