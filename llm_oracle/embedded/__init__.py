"""The model that Hapax ships: its atlas of facts, its training and the trained files. Importing this costs nothing."""
