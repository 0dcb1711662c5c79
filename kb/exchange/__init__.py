"""Facts into and out of a knowledge base: files, tables, checks, merges."""
