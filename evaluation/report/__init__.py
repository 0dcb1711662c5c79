"""One self-contained HTML page about a run: `build.py` collects its content, `page.py` renders it."""
