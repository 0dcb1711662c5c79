"""Results with a real model: a command measures it on all that Hapax evaluates, and writes `docs/results.md`."""
