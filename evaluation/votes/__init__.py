"""People's votes on statements: sheets to fill in, and counts of the answers (LINK, 3.3, appendices C and I).

`voting_questions.py` words the questions, `voting_items.py` draws their subjects from a knowledge base, `sheets.py`
writes sheets and reads them back, `soundness.py` has the shares of true statements, and `vote_report.py` LINK's tables.
"""
