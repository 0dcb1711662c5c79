"""Models that run in this process, one file a library. Imported only when a model is opened."""
