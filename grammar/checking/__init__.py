"""The checks of rules, and the faults that they find."""
