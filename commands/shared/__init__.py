"""Options of the command line and how they are read."""
