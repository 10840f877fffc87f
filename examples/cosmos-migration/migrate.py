"""From Azure Cosmos DB to Ebb, with everything's time to live.

Reads what the Cosmos DB desktop migration tool or a change feed has written, a JSON document a line, and keeps what each document has left to
live: in Cosmos DB that counts from `_ts`, the second of its last change, and after a move the changes are all of today. So each document
gets a `ttl` of what is left of its own, or of the container's default; what has run out already is left behind.

    MONGODB_URI=mongodb://127.0.0.1:27017 python migrate.py items.jsonl --default-ttl 86400

Once every document has been written anew by the application, its `ttl` is again what the application says.
"""

import argparse
import json
import os
import time

from pymongo import InsertOne, MongoClient

# What Cosmos DB adds to each document by itself.
SYSTEM = {"_rid", "_self", "_etag", "_attachments", "_ts"}
BATCH = 1000


def moved(item, default_ttl, now):
    """The document to write, or None for one that has run out."""
    doc = {k: v for k, v in item.items() if k not in SYSTEM}
    doc["_id"] = doc.pop("id")
    ttl = item.get("ttl", default_ttl)
    if default_ttl is None:  # TTL is off for the container: what documents say does not count
        doc.pop("ttl", None)
        return doc
    if ttl == -1:
        doc["ttl"] = -1
        return doc
    left = item["_ts"] + ttl - now
    if left <= 0:
        return None
    doc["ttl"] = left
    return doc


def migrate(lines, collection, default_ttl, now):
    if default_ttl is not None:
        collection.create_index("_ts", expireAfterSeconds=default_ttl)
    counts = {"moved": 0, "run out": 0}
    batch = []

    def flush():
        if batch:
            collection.bulk_write(batch, ordered=False)
            counts["moved"] += len(batch)
            batch.clear()

    for line in lines:
        doc = moved(json.loads(line), default_ttl, now)
        if doc is None:
            counts["run out"] += 1
            continue
        batch.append(InsertOne(doc))
        if len(batch) == BATCH:
            flush()
    flush()
    return counts


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("file", type=argparse.FileType(encoding="utf-8"))
    parser.add_argument("--default-ttl", type=int, help="the container's, in seconds; -1 is on without a default; left out, TTL is off")
    parser.add_argument("--db", default="example_cosmos")
    parser.add_argument("--collection", default="items")
    args = parser.parse_args()
    client = MongoClient(os.environ.get("MONGODB_URI", "mongodb://127.0.0.1:27017"))
    for what, n in migrate(args.file, client[args.db][args.collection], args.default_ttl, int(time.time())).items():
        print(f"{what}: {n}")


if __name__ == "__main__":
    main()
