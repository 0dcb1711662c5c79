"""The LINK paper's evaluations: likelihood, baselines, probing, and its dataset LINT."""
