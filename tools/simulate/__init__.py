"""Deterministic simulation: Hapax on a simulated clock, disk, network and scheduler, with faults drawn by a seed.

`scheduling.py` runs processes and threads one at a time, `vfs.py` is a layer below SQLite, `disk.py` decides what fails
and what a power cut keeps, `network.py` is a server and the way to it, `machine.py` joins these, `scenarios.py` has the
commands that run on it, `checks.py` what must hold afterwards, and `__main__.py` draws the faults of a seed.
"""
