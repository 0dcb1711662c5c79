"""Fuzz targets: contracts that must hold for any input.

Each file is one target, which atheris runs from the command line (`python -m fuzz.rules --seconds 60`) and Hypothesis
runs in the tests.
"""
