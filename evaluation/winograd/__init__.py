"""Winograd schemas and their concept-reversed counterparts (CR-WSC).

`schema_files.py` reads them, `schema_asking.py` asks and stores what was asked, `generation.py` makes new ones, and
`schema_reports.py` has tables, cases, people's sheets, and tasks for lm-evaluation-harness.
"""
