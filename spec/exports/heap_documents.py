"""Reads JSON lines as mongoimport does, by its rules: python heap_documents.py FILE

Each line is one document in Extended JSON (version 2) and must fit into BSON: keys are unique, do not begin with `$` (they
would stand for types, as {"$oid": ...}) and have neither NUL nor a dot; integers have 64 bits; text is valid UTF-8; a
document nests at most 100 levels and takes at most 16 MiB; `_id` is unique. With the package pymongo its own parser reads
each line, too, and its encoder must come to the same size. Fails with the first line that breaks a rule.
"""
import json
import sys

LONGEST = 16 * 1024 * 1024
DEEPEST = 100

try:
    import bson
    from bson import json_util
except ImportError:
    bson = None


def document(pairs):
    keys = [key for key, _ in pairs]
    assert len(set(keys)) == len(keys), "a key is there twice"
    for key in keys:
        assert key and not key.startswith("$"), f"key {key!r} stands for a type"
        assert "\0" not in key and "." not in key, f"key {key!r} is no key"
    return dict(pairs)


def no_number(text):
    raise ValueError(f"{text} is no JSON")


def text_size(text):
    # A half of a pair of surrogates is no character.
    return len(text.encode("utf-8", "strict"))


def size(value, depth=1):
    """Bytes of a value in BSON, without its key."""
    assert depth <= DEEPEST, "it nests too deep"
    if isinstance(value, dict):
        return 5 + sum(2 + text_size(key) + size(each, depth + 1) for key, each in value.items())
    if isinstance(value, list):
        return 5 + sum(2 + len(str(index)) + size(each, depth + 1) for index, each in enumerate(value))
    if isinstance(value, str):
        return 5 + text_size(value)
    if value is None:
        return 0
    if isinstance(value, bool):
        return 1
    if isinstance(value, int):
        assert -(1 << 63) <= value < 1 << 63, f"{value} does not fit into 64 bits"
        return 4 if -(1 << 31) <= value < 1 << 31 else 8
    assert isinstance(value, float), type(value)
    return 8


def main(path):
    seen, largest = set(), 0
    with open(path, "rb") as lines:
        for number, line in enumerate(lines, 1):
            try:
                assert line.endswith(b"}\n"), "it is no document, or is cut"
                text = line.decode("utf-8", "strict")
                found = json.loads(text, object_pairs_hook=document, parse_constant=no_number)
                bytes_of = size(found)
                assert bytes_of <= LONGEST, f"it takes {bytes_of} bytes"
                assert isinstance(found["_id"], str) and found["_id"] not in seen, "_id is not unique"
                seen.add(found["_id"])
                if bson:
                    assert len(bson.encode(json_util.loads(text))) == bytes_of, "pymongo reads something else"
            except Exception as error:
                sys.exit(f"line {number}: {error}: {line[:200]!r}")
            largest = max(largest, bytes_of)
    assert seen, "there is no document"
    print(f"ok: {len(seen)} documents of up to {largest} bytes{', also for pymongo' if bson else ''}")


main(sys.argv[1])
