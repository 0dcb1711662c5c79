"""Baselines of LINK: statements by instruction only, and the grid of tables 7 to 10."""
