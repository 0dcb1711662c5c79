"""The Python API: the operations that scripts, notebooks and the command line share, and their results."""
