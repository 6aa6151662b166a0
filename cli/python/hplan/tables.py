"""tables.py - plan.db, run.db and bench.db: their tables and the views of views.sql."""
import pathlib
import sqlite3
import urllib.parse

try:
    import pandas
except ImportError:
    pandas = None

APPLICATION = b"hpln"  # bytes 68 to 71, as docs/formats.md says


def frame(rows):
    """A list of dicts as a DataFrame, where pandas is installed."""
    return rows if pandas is None else pandas.DataFrame(rows)


class Database:
    """db["steps"]: a table or a view. db.sql("SELECT ...", parameters): any query. Read-only; close() or `with`."""

    def __init__(self, path):
        with open(path, "rb") as file:  # OSError where there is none
            head = file.read(72)
        if head[68:] != APPLICATION:
            raise ValueError(f"{path} is not a database of hplan")
        quoted = urllib.parse.quote(str(pathlib.Path(path).resolve()))
        self.sqlite = sqlite3.connect(f"file:{quoted}?mode=ro", uri=True)
        self.sqlite.executescript((pathlib.Path(__file__).parent / "views.sql").read_text(encoding="utf-8"))

    def names(self):
        """Tables and views."""
        query = "SELECT name FROM sqlite_master WHERE type = 'table' UNION ALL SELECT name FROM sqlite_temp_master"
        return [name for name, in self.sqlite.execute(query)]

    def rows(self, query, parameters=()):
        """A query's rows, each a dict."""
        cursor = self.sqlite.execute(query, parameters)
        names = [column[0] for column in cursor.description]
        return [dict(zip(names, row)) for row in cursor]

    def sql(self, query, parameters=()):
        """A query as a frame, which has its columns even without rows."""
        if pandas is None:
            return self.rows(query, parameters)
        return pandas.read_sql_query(query, self.sqlite, params=parameters)

    def __getitem__(self, name):
        if name not in self.names():
            raise KeyError(f"there is no {name}; there are {', '.join(self.names())}")
        return self.sql(f'SELECT * FROM "{name}"')

    def close(self):
        self.sqlite.close()

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.close()


def read(path):
    """Opens plan.db, run.db or bench.db for reading. OSError: no such file; ValueError: another file."""
    return Database(path)
