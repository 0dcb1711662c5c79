"""The least that an import has to do: `python -m benchmarks.plain_import TABLE DATABASE`.

A CSV file with a line of names goes into one table by `executemany`, and the index is built afterwards.
"""

from __future__ import annotations

import csv
import sqlite3
import sys
from pathlib import Path


def fill(table: Path, database: Path) -> None:
    """Import the columns `airport` and `elevation`."""
    with table.open(newline="", encoding="utf-8") as stream, sqlite3.connect(database) as connection:
        connection.execute("CREATE TABLE lies_at (airport, elevation)")
        rows = ((row["airport"], int(row["elevation"])) for row in csv.DictReader(stream))
        connection.executemany("INSERT INTO lies_at VALUES (?, ?)", rows)
        connection.execute("CREATE INDEX arguments ON lies_at (airport, elevation)")
    connection.close()


if __name__ == "__main__":
    fill(*map(Path, sys.argv[1:]))
