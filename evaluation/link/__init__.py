"""The LINK paper's evaluations: likelihood, ablation, baselines, probing, and its dataset LINT."""
