"""Deterministic simulation: Hapax on a simulated clock, disk, network and scheduler, with faults drawn by a seed.

`scheduling.py` runs processes and threads one at a time, `vfs.py` is a layer below SQLite, `disk.py` decides what fails
and what a power cut keeps, `machine.py` joins these, `running.py` has the commands that run on it, draws the faults of
a seed and checks what must hold afterwards.
"""
