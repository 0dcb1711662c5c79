"""One self-contained HTML page of a run: `build.py` gathers, `page.py` writes."""
