"""People's votes on statements: sheets to fill in, and counts of the answers (LINK, 3.3, appendices C and I).

`questions.py` words the questions, `items.py` takes their subjects from a knowledge base, `sheets.py` writes sheets and
`reading.py` reads them back; `importing.py` checks and stores votes, `tally.py` and `agreement.py` count them, and
`report.py` makes tables.
"""
