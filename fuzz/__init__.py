"""Contracts that hold for any input: each file is one target, run by atheris from the command line and by Hypothesis in
the tests. `python -m fuzz.rules --seconds 60` runs one.
"""
