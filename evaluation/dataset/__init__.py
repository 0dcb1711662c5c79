"""A knowledge base as a dataset in the shape of LINT: rows, and the formats that they are written in."""
