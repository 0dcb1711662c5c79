"""Winograd schemas and their concept-reversed counterparts (CR-WSC).

`schema_files.py` reads them, `schema_asking.py` asks and stores what was asked, of which `schema_reports.py` makes
tables and cases; `generation.py` makes new ones, and `schema_export.py` is for others.
"""
