"""Backends: models in this process and on servers. Heavy libraries are imported only when a model is opened."""
