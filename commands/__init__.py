"""The commands of `hapax`, a module for each group; cli.py puts them together."""
