"""The embedded model: its atlas of facts and the trained files."""
