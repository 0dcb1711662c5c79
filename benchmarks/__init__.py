"""Measurements of what users call, beside other engines that do the same; `benchmarks/README.md` explains them."""
