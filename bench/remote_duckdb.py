"""Answers queries with DuckDB over what is read by HTTP, and times itself: a request a line on standard input, an answer a line
on standard output, both JSON. Each query has a connection of its own, which knows nothing of the file. That, and loading the
extension, is done before the clock runs."""

import json
import pathlib
import platform
import sys
import time

import duckdb
import duckdb_extension_httpfs

EXTENSION = next(pathlib.Path(duckdb_extension_httpfs.__file__).parent.glob("**/httpfs.duckdb_extension"))


def connect():
    connection = duckdb.connect()
    connection.execute("SET autoinstall_known_extensions=false")
    connection.execute(f"LOAD '{EXTENSION}'")
    return connection


def about(request):
    with connect() as connection:
        version = connection.execute("SELECT version()").fetchone()[0]
    return "DuckDB " + version + ", its extension httpfs, Python " + platform.python_version()


def query(request):
    with connect() as connection:
        start = time.perf_counter()
        rows = connection.execute(request["sql"]).fetchall()
        seconds = time.perf_counter() - start
    return {"seconds": seconds, "rows": [[None if v is None else str(v) for v in row] for row in rows]}


for line in sys.stdin:
    request = json.loads(line)
    print(json.dumps({"about": about, "query": query}[request["op"]](request)), flush=True)
