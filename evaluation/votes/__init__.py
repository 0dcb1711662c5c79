"""People's votes on statements: sheets to fill in, and counts of the answers (LINK, 3.3, appendices C and I).

`questions.py` words the questions, `items.py` takes their subjects from a knowledge base, `sheets.py` writes sheets,
`importing.py` reads them back and stores the votes, `tally.py` counts them, and `report.py` makes tables.
"""
