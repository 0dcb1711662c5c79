"""Values and functions of expressions."""
