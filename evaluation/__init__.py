"""The papers' experiments and the measurements of what ships; imported by the command line alone."""
