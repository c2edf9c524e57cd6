"""Reads the graphs of a heap with networkx: python heap_graphs.py DIRECTORY

DIRECTORY holds heap.gml and heap.gexf, and heap.jsonl, which has all objects with their references: what the graphs show
must be there. networkx stands for Gephi, which is no library and wants a display: both read the same two formats.
Fails with the first difference; ends with 3 if networkx is not there.
"""
import json
import os
import sys

try:
    import networkx
except ImportError as error:
    print(f"networkx: skipped, {error}")
    sys.exit(3)

directory = sys.argv[1]


def path(name):
    return os.path.join(directory, name)


with open(path("heap.jsonl"), encoding="utf-8") as lines:
    documents = {document["_id"]: document for document in map(json.loads, lines)}
counts = {"references": 0}


def name_of(title, facts):
    """What a node is in heap.jsonl: an object by its address, a root by its category, folded ones not at all."""
    if facts["type"] == "root":
        return title.replace("root ", "root:", 1)
    return None if facts["type"] == "more" else title.rsplit(" ", 1)[1]


def check_node(title, facts):
    name = name_of(title, facts)
    if name is None or facts["type"] == "root":
        return
    document = documents[name]
    shown = (facts["type"], facts["class"], int(facts["size"]), int(facts["retained"]))
    meant = (document["type"], document["class_name"], document["memsize"], document["retained"])
    assert shown == meant, f"{title}: {shown} instead of {meant}"


def dominators(name):
    """All of them, the immediate one first."""
    while name in documents and documents[name].get("dominator"):
        name = documents[name]["dominator"]
        yield name


def check_edge(source, target, label):
    if label == "(more)":
        assert target is None, f"{target} is shown, and said to be folded"
    elif label == "(through others)":
        # It is kept alive by way of objects that are not shown, which may be some of its dominators. What is memprof's
        # own has no document: from there on nothing says what retains it.
        known = list(dominators(target))
        ends_early = known and not known[-1].startswith("root")
        assert source in known or ends_early, f"{source} does not keep {target} alive"
    elif source in documents and target is not None:
        holder = documents[source]
        known = target in holder["references"] or target == holder.get("class")
        assert known, f"{source} does not refer to {target} ({label})"
        counts["references"] += 1


def check(graph):
    assert graph.is_directed() and len(graph), "no directed graph"
    names = {}
    for node, facts in graph.nodes(data=True):
        # GML's nodes are known by their labels.
        title = facts.get("label", node)
        check_node(title, facts)
        names[node] = name_of(title, facts)
    for source, target, facts in graph.edges(data=True):
        check_edge(names[source], names[target], facts.get("label", ""))
    return {name for name in names.values() if name}


gml = check(networkx.read_gml(path("heap.gml")))
gexf = check(networkx.read_gexf(path("heap.gexf")).copy())
assert gml == gexf, "the two do not show the same objects"
assert gml and counts["references"], "nothing was compared"
print(f"networkx: ok, {len(gml)} objects and roots, {counts['references']} references in both")
