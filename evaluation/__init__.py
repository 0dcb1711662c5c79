"""The papers' experiments and the measurements of what ships; used by the package's functions and the command line."""
