"""The LINK paper's evaluations.

`likelihood.py` measures delta and `figures.py` draws it, `instruct.py` and `grid.py` are the baselines and `judging.py`
their judges, `probing.py` asks the 13 questions, `long_tail.py` compares measures, and `lint_import.py` imports LINT.
"""
