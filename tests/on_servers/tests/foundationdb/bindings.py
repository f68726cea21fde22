"""The Python binding of FoundationDB beside keyloom: what one writes the other reads, key by key.

    python3 bindings.py CLUSTER_FILE read NAME         prints each key of the store, decoded by the binding
    python3 bindings.py CLUSTER_FILE write NAME        writes records into the store through fdb.Subspace
    python3 bindings.py CLUSTER_FILE directory PATH    makes a directory and prints its prefix
    python3 bindings.py CLUSTER_FILE remove PATH       removes it
    python3 bindings.py CLUSTER_FILE list PATH         prints each key in the directory
"""

import json
import sys
import uuid

import fdb
import fdb.tuple

fdb.api_version(730)


def plain(element):
    """An element of a tuple in JSON, with its type where JSON has none."""
    if isinstance(element, bytes):
        return {"bytes": element.hex()}
    if isinstance(element, uuid.UUID):
        return {"uuid": element.hex}
    if isinstance(element, fdb.tuple.Versionstamp):
        return {"versionstamp": element.to_bytes().hex()}
    if isinstance(element, fdb.tuple.SingleFloat):
        return {"float": element.value}
    if isinstance(element, (tuple, list)):
        return [plain(inner) for inner in element]
    return element


def show(entries, unpack):
    for key, value in entries:
        key_tuple = unpack(key)
        print(json.dumps([[plain(element) for element in key_tuple], value.hex()]))


def main():
    _, cluster_file, action, name = sys.argv
    database = fdb.open(cluster_file)
    if action == "read":
        space = fdb.Subspace((name,))
        show(database[space.range()], space.unpack)
    elif action == "write":
        space = fdb.Subspace((name,))
        stamp = fdb.tuple.Versionstamp(b"\0\0\0\0\0\0\0\7\0\1", 2)
        rows = [
            ("text \u00fc\0", 1), (-(2**40), 2), (b"\0\xff", 3), (2.5, 4), (True, 5), (None, 6),
            (uuid.UUID(int=7), 7), (("nested", (1, None)), 8), (stamp, 9), (2**70, 10),
        ]
        for element, number in rows:
            database[space.pack((element,))] = bytes([number])
        database.add(space.pack(("visits",)), (41).to_bytes(8, "little"))
    elif action == "directory":
        print(fdb.directory.create_or_open(database, tuple(name.split("/"))).key().hex())
    elif action == "remove":
        fdb.directory.remove_if_exists(database, tuple(name.split("/")))
    elif action == "list":
        directory = fdb.directory.open(database, tuple(name.split("/")))
        show(database[directory.range()], directory.unpack)


main()
