"""Rule mining: closed rules of up to three premises from the facts of a knowledge base, as AMIE mines them.

`tables.py` writes the facts as edges between integers, and has the forms of rules; `measuring.py` finds the rules that
may have enough support, and measures them; `mine.py` puts these together, and proposes them for the sheet of `rules
expand`.
"""
