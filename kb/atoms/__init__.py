"""Facts and derived atoms as relations of tagged constants."""
