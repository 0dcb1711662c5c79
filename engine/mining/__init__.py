"""Rule mining: closed rules of up to three premises from the facts of a knowledge base, as AMIE mines them.

`tables.py` writes the facts as edges between integers, `shapes.py` lists the forms that a rule can have, `screening.py`
finds the rules that may have enough support, `measuring.py` measures them, `mine.py` puts these together, and
`review.py` writes the rules to the sheet of `rules expand`.
"""
