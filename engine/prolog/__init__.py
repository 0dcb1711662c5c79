"""The worker process of SWI-Prolog, its limits and its programs."""
