"""Reads exports of a heap with the programs that they are for: python heap_tables.py DIRECTORY

DIRECTORY holds heap.jsonl (what the others have to add up to), objects.parquet, edges.parquet, objects.csv and
references.csv. What is not installed (duckdb, pyspark: both from pip) is skipped with a message. Fails with the first
difference.
"""
import json
import os
import sys

directory = sys.argv[1]


def path(name):
    return os.path.join(directory, name)


with open(path("heap.jsonl"), encoding="utf-8") as lines:
    documents = [json.loads(line) for line in lines]
objects = [document for document in documents if document["type"] != "root"]
addresses = {document["_id"] for document in objects}
# Those to their classes are no elements of the list.
references = sum(len(document["references"]) + (document.get("class") in addresses) for document in objects)

FIGURES = """
    count(*), sum(size), sum(retained), min(id), max(id), count(dominator), count(length), count(file),
    count(distinct class), count(distinct type), count(distinct flags)
"""


def count(key):
    return sum(1 for document in objects if document.get(key) is not None)


def distinct(key):
    return len({document[key] for document in objects})


expected = (
    len(objects), sum(document["memsize"] for document in objects), sum(document["retained"] for document in objects),
    0, len(objects) - 1, sum(1 for document in objects if document["dominator"] in addresses), count("length"), count("file"),
    distinct("class_name"), distinct("type"), len({tuple(document["flags"]) for document in objects}),
)


def compare(what, figures, wanted):
    figures = tuple(int(figure) for figure in figures)
    assert figures == wanted, f"{what}: {figures} instead of {wanted}"


def duckdb():
    import duckdb as database

    query = lambda text: database.sql(text).fetchall()
    parquet = f"'{path('objects.parquet')}'"
    compare("objects.parquet", query(f"select {FIGURES} from {parquet}")[0], expected)
    edges = f"'{path('edges.parquet')}'"
    compare("edges.parquet", query(f"select count(*) from {edges}")[0], (references,))
    joined = f"select count(*) from {edges} e join {parquet} o on o.id = e.\"from\" join {parquet} t on t.id = e.\"to\""
    compare("edges lead to objects", query(joined)[0], (query(f"select count(*) from {edges}")[0][0],))
    groups = max(row[0] for row in query(f"select row_group_num_rows from parquet_metadata({parquet})"))
    assert groups <= 122_880, groups
    csv = f"read_csv('{path('objects.csv')}', header = true, all_varchar = true, strict_mode = true)"
    compare("objects.csv", query(f"select count(*), sum(size::bigint), sum(retained::bigint) from {csv}")[0], expected[:3])
    csv = f"read_csv('{path('references.csv')}', header = true, all_varchar = true, strict_mode = true)"
    compare("references.csv", query(f"select count(*) from {csv}")[0], (references,))
    compare("heap.jsonl", query(f"select count(*) from read_json('{path('heap.jsonl')}')")[0], (len(documents),))


def spark():
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    session = builder.config("spark.sql.shuffle.partitions", "1").getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    try:
        session.read.parquet(path("objects.parquet")).createOrReplaceTempView("objects")
        session.read.parquet(path("edges.parquet")).createOrReplaceTempView("edges")
        compare("objects.parquet", session.sql(f"select {FIGURES} from objects").first(), expected)
        compare("edges.parquet", session.sql("select count(*) from edges").first(), (references,))
    finally:
        session.stop()


def attempt(name, check):
    try:
        check()
        print(f"{name}: ok")
    except ImportError as error:
        print(f"{name}: skipped, {error}")


attempt("duckdb", duckdb)
attempt("spark", spark)
