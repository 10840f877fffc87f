"""Moves a handful of documents as Cosmos DB has them, and looks at what is left to live: `python try.py`."""

import io
import json
import os
import time

from bson.codec_options import CodecOptions
from pymongo import MongoClient

from migrate import migrate

client = MongoClient(os.environ.get("MONGODB_URI", "mongodb://127.0.0.1:27017"))
client.drop_database("example_cosmos")
items = client.example_cosmos.items
now = int(time.time())


def item(name, age, **more):
    return {"id": name, "name": name, "_rid": "x", "_self": "x", "_etag": "x", "_attachments": "x", "_ts": now - age, **more}


lines = io.StringIO("\n".join(json.dumps(i) for i in [
    item("young", 10), item("old", 90), item("gone", 100), item("own", 90, ttl=300), item("brief", 0, ttl=2), item("kept", 900, ttl=-1),
]))
counts = migrate(lines, items, 100, now)
assert counts == {"moved": 5, "run out": 1}, counts
assert {d["_id"]: d["ttl"] for d in items.find()} == {"young": 90, "old": 10, "own": 210, "brief": 2, "kept": -1}
print("five are moved with what they have left, one had run out")


def goes(name):
    reply = client.example_cosmos.command("ebbTTL", "items", explain=name, codec_options=CodecOptions(tz_aware=True))
    return round(reply["deadline"].timestamp() - time.time()) if reply["expires"] else None


assert goes("kept") is None and 205 <= goes("own") <= 210 and 85 <= goes("young") <= 90
print("the database says the same")

time.sleep(2.5)
assert items.count_documents({"_id": "brief"}) == 0
items.update_one({"_id": "old"}, {"$set": {"name": "new"}, "$unset": {"ttl": ""}})
assert 95 <= goes("old") <= 100
print("and what is written anew lives as long as new ones do")
