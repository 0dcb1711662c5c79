"""Programs for the developers of Hapax. They are not in the wheel."""
