"""The rule library: data files, one a theme."""
