"""People's votes: sheets that they fill in, and what their answers come to (LINK, 3.3, appendices C and I).

`questions.py` words what is asked, `items.py` takes it from a knowledge base, `sheets.py` writes it and `reading.py`
reads it back; `importing.py` checks and stores, `tally.py` and `agreement.py` count, `report.py` tells.
"""
