"""PyMongo: ordinary life, and both kinds of TTL with Python's own dates."""

import os
import threading
import time
from datetime import datetime, timedelta, timezone

import gridfs
import pymongo
from bson import Binary, Decimal128, Int64, ObjectId, Regex
from bson.binary import BinaryVectorDtype
from pymongo.errors import BulkWriteError, CursorNotFound, DuplicateKeyError, OperationFailure
from pymongo.operations import SearchIndexModel

import checks

URI = os.environ.get("EBB_URI", "mongodb://127.0.0.1:27017/?directConnection=true")
RECLAIM = 10  # reclaim follows expiry at once; what is waited for beyond it is a slow machine
TOO_SLOW = "this machine is too slow to say"

client = pymongo.MongoClient(URI, tz_aware=True)
db = client["e2e_python"]


def check(body):
    """Runs the function and reports it under the first line of its doc string."""
    checks.check(body.__doc__.splitlines()[0], body)


def sleep_until(moment):
    time.sleep(max(0, moment - time.time()))


def eventually(limit, what, condition):
    end = time.time() + limit
    while not condition():
        assert time.time() < end, f"not within {limit} s: {what}"
        time.sleep(0.05)


def refused(code, call):
    try:
        call()
    except OperationFailure as error:
        assert error.code == code, f"want {code}: {error!r}"
        return error
    raise AssertionError(f"accepted, but {code} was expected")


def write_and_read():
    """write and read"""
    people = db.people
    assert isinstance(people.insert_one({"name": "Ada", "tags": ["a", "b"]}).inserted_id, ObjectId)
    people.insert_many([{"name": "Grace", "n": 1}, {"name": "Edsger", "n": 2}])
    assert [p["name"] for p in people.find({"n": {"$gte": 1}}).sort("n", pymongo.DESCENDING)] == ["Edsger", "Grace"]
    assert people.find_one({"tags": "b"})["name"] == "Ada"
    assert people.update_many({"n": {"$in": [1, 2]}}, {"$mul": {"n": 10}}).modified_count == 2
    assert people.update_one({"_id": 7}, {"$set": {"n": 0}}, upsert=True).upserted_id == 7
    assert people.replace_one({"_id": 7}, {"name": "x"}).modified_count == 1
    assert people.delete_one({"_id": 7}).deleted_count == 1
    assert people.count_documents({}) == 3 == people.estimated_document_count()
    assert sorted(people.distinct("n")) == [10, 20]


def types():
    """types come back as they went"""
    sent = {
        "_id": 1, "int": 1, "long": Int64(2**53 + 1), "double": 1.5, "decimal": Decimal128("1.10"), "bytes": b"\x00\xff",
        "date": datetime(1969, 12, 31, 23, 59, 59, 999000, tzinfo=timezone.utc), "regex": Regex("^a", "i"), "none": None, "text": "a\u0000b",
    }
    db.types.insert_one(sent)
    got = db.types.find_one({"_id": 1})
    assert got == sent and list(got) == list(sent) and isinstance(got["long"], Int64), got


def aggregation():
    """aggregate"""
    db.sales.insert_many([{"item": "a", "qty": 2}, {"item": "b", "qty": 1}, {"item": "a", "qty": 5}])
    rows = list(db.sales.aggregate([
        {"$group": {"_id": "$item", "qty": {"$sum": "$qty"}, "average": {"$avg": "$qty"}}},
        {"$addFields": {"label": {"$concat": ["<", "$_id", ">"]}}},
        {"$sort": {"_id": -1}},
    ]))
    assert rows == [{"_id": "b", "qty": 1, "average": 1.0, "label": "<b>"}, {"_id": "a", "qty": 7, "average": 3.5, "label": "<a>"}], rows


def cursors():
    """cursors over several batches"""
    db.many.insert_many([{"_id": i} for i in range(2500)])
    assert [d["_id"] for d in db.many.find(batch_size=99)] == list(range(2500))
    assert sum(1 for _ in db.many.aggregate([{"$match": {}}], batchSize=99)) == 2500
    cursor = db.many.find(batch_size=2)
    next(cursor)
    db.command("killCursors", "many", cursors=[cursor.cursor_id])
    try:
        list(cursor)
        raise AssertionError("a killed cursor went on")
    except CursorNotFound as error:
        assert error.code == 43


def sessions():
    """a session"""
    with client.start_session(causal_consistency=False) as session:
        db.session.insert_one({"_id": 1}, session=session)
        assert db.session.find_one({}, session=session) == {"_id": 1}


def bulk():
    """bulk_write tells what happened to each"""
    result = db.bulk.bulk_write([
        pymongo.InsertOne({"_id": 1}),
        pymongo.UpdateOne({"_id": 2}, {"$set": {"a": 1}}, upsert=True),
        pymongo.UpdateMany({}, {"$set": {"b": 1}}),
        pymongo.DeleteOne({"_id": 1}),
    ])
    assert (result.inserted_count, result.upserted_count, result.modified_count, result.deleted_count) == (1, 1, 2, 1)
    try:
        db.bulk.insert_many([{"_id": 3}, {"_id": 2}, {"_id": 4}], ordered=False)
        raise AssertionError("a duplicate was accepted")
    except BulkWriteError as error:
        assert error.details["nInserted"] == 2 and error.details["writeErrors"][0]["code"] == 11000
    models = [pymongo.InsertOne({"_id": 1}, namespace="e2e_python.all"), pymongo.DeleteMany({}, namespace="e2e_python.all")]
    result = client.bulk_write(models)
    assert (result.inserted_count, result.deleted_count) == (1, 1)


def indexes():
    """indexes, and the plan that uses one"""
    coll = db.indexes
    assert coll.create_index("email", unique=True) == "email_1"
    assert coll.create_index([("a", 1), ("b", -1)], partialFilterExpression={"a": {"$gt": 0}}) == "a_1_b_-1"
    assert list(coll.index_information()) == ["_id_", "email_1", "a_1_b_-1"]
    coll.insert_one({"email": "a@x"})
    try:
        coll.insert_one({"email": "a@x"})
        raise AssertionError("a duplicate was accepted")
    except DuplicateKeyError as error:
        assert error.code == 11000 and error.details["keyValue"] == {"email": "a@x"}
    plan = coll.find({"email": "a@x"}).explain()["queryPlanner"]["winningPlan"]
    assert (plan["stage"], plan["indexName"]) == ("EXPRESS_IXSCAN", "email_1"), plan
    coll.drop_index("email_1")
    refused(27, lambda: coll.drop_index("email_1"))


def vectors():
    """vector search, through the driver's own helpers"""
    coll = db.vectors
    packed = Binary.from_vector([0.0, 1.0], BinaryVectorDtype.FLOAT32)
    coll.insert_many([{"_id": 1, "v": [1.0, 0.0], "k": "a"}, {"_id": 2, "v": packed, "k": "a"}, {"_id": 3, "v": [0.5, 0.5], "k": "b"}])
    fields = [{"type": "vector", "path": "v", "numDimensions": 2, "similarity": "cosine"}, {"type": "filter", "path": "k"}]
    model = SearchIndexModel({"fields": fields}, name="near", type="vectorSearch")
    assert coll.create_search_index(model) == "near"
    assert [(i["name"], i["status"], i["queryable"]) for i in coll.list_search_indexes()] == [("near", "READY", True)]
    ask = {"index": "near", "path": "v", "queryVector": packed, "numCandidates": 10, "limit": 2}
    assert [d["_id"] for d in coll.aggregate([{"$vectorSearch": ask}])] == [2, 3]
    assert [d["_id"] for d in coll.aggregate([{"$vectorSearch": {**ask, "filter": {"k": "a"}}}])] == [2, 1]
    coll.update_search_index("near", {"fields": fields[:1]})
    assert [i["latestDefinition"] for i in coll.list_search_indexes("near")] == [{"fields": fields[:1]}]
    coll.drop_search_index("near")
    assert list(coll.list_search_indexes()) == []
    refused(27, lambda: coll.drop_search_index("near"))


def words():
    """full-text search, through the driver's own helpers"""
    coll = db.words
    coll.insert_many([{"_id": 1, "t": "the quick brown fox", "n": 1}, {"_id": 2, "t": "quick quick", "n": 2}, {"_id": 3, "t": "a lazy dog", "n": 3}])
    assert coll.create_search_index({"definition": {"mappings": {"dynamic": True}}}) == "default"
    assert [(i["name"], i["type"], i["queryable"]) for i in coll.list_search_indexes()] == [("default", "search", True)]
    text = {"text": {"query": "quik", "path": "t", "fuzzy": {"maxEdits": 1}}}
    shown = {"$project": {"score": {"$meta": "searchScore"}, "where": {"$meta": "searchHighlights"}}}
    first, second = coll.aggregate([{"$search": {**text, "highlight": {"path": "t"}}}, shown])
    assert (first["_id"], second["_id"]) == (2, 1) and first["score"] > second["score"] > 0, (first, second)
    assert [t["value"] for t in second["where"][0]["texts"] if t["type"] == "hit"] == ["quick"], second
    facets = {"ns": {"type": "number", "path": "n", "boundaries": [0, 2, 9]}}
    (meta,) = coll.aggregate([{"$searchMeta": {"facet": {"operator": text, "facets": facets}}}])
    assert meta == {"count": {"lowerBound": 2}, "facet": {"ns": {"buckets": [{"_id": 0, "count": 1}, {"_id": 2, "count": 1}]}}}, meta
    coll.drop_search_index("default")
    assert list(coll.aggregate([{"$search": text}])) == []


def find_and_modify():
    """find_one_and_…"""
    coll, after = db.fam, pymongo.ReturnDocument.AFTER
    assert coll.find_one_and_update({"_id": 1}, {"$inc": {"n": 1}}, upsert=True, return_document=after) == {"_id": 1, "n": 1}
    assert coll.find_one_and_update({"_id": 1}, [{"$set": {"n": {"$add": ["$n", 5]}}}], return_document=after)["n"] == 6
    assert coll.find_one_and_delete({"_id": 1})["n"] == 6
    assert coll.find_one_and_delete({"_id": 1}) is None


def errors_and_stats():
    """errors and statistics"""
    refused(59, lambda: db.command("noSuchCommand"))
    refused(2, lambda: list(db.people.find({"a": {"$noSuch": 1}})))
    refused(26, lambda: db.command("collMod", "nowhere"))
    assert db.command("collStats", "people")["count"] == 3
    assert "people" in db.list_collection_names() and "e2e_python" in client.list_database_names()
    assert db.validate_collection("people")["valid"]
    assert client.server_info()["version"].startswith("8.2.")


def files():
    """GridFS"""
    fs = gridfs.GridFS(db)
    data = os.urandom(600_000)
    file_id = fs.put(data, filename="tide.bin", kind="test")
    assert fs.get(file_id).read() == data
    assert fs.find_one({"kind": "test"}).length == len(data)
    assert fs.list() == ["tide.bin"]
    fs.delete(file_id)
    assert db.fs.chunks.count_documents({}) == 0


def ttl_of_datetimes():
    """TTL on a datetime"""
    coll = db.by_date
    assert coll.create_index("at", expireAfterSeconds=2) == "at_1"
    assert coll.index_information()["at_1"]["expireAfterSeconds"] == 2
    now = datetime.now(timezone.utc)
    before = time.time()
    coll.insert_many([
        {"_id": "now", "at": now},
        {"_id": "local", "at": now.astimezone(timezone(timedelta(hours=-7)))},
        {"_id": "old", "at": datetime(1900, 1, 1, tzinfo=timezone.utc)},
        {"_id": "list", "at": [now + timedelta(days=1), now - timedelta(days=1)]},
        {"_id": "future", "at": now + timedelta(hours=1)},
        {"_id": "text", "at": now.isoformat()},
        {"_id": "seconds", "at": before},
        {"_id": "missing"},
    ])
    never = ["future", "missing", "seconds", "text"]
    ids = lambda: sorted(coll.distinct("_id"))
    eventually(RECLAIM, "what was expired already goes", lambda: not {"old", "list"} & set(ids()))
    seen = ids()
    if time.time() < before + 1.9:
        assert seen == sorted(never + ["now", "local"]), seen
    eventually(RECLAIM, "after two seconds", lambda: ids() == never)
    assert time.time() >= now.timestamp() + 2, "gone before its time"

    reply = db.command("collMod", "by_date", index={"name": "at_1", "expireAfterSeconds": 1000})
    assert (reply["expireAfterSeconds_old"], reply["expireAfterSeconds_new"]) == (2, 1000)
    refused(85, lambda: coll.create_index("at", expireAfterSeconds=7))


def ttl_of_documents():
    """TTL on _ts with ttl in documents"""
    coll = db.by_ts
    reply = db.command("createIndexes", "by_ts", indexes=[{"key": {"_ts": 1}, "name": "_ts_1", "expireAfterSeconds": 10}])
    assert reply["_t"] == "CreateIndexesResponse" and reply["createdCollectionAutomatically"], reply
    before = time.time()
    coll.insert_many([
        {"_id": "double", "ttl": 20.0}, {"_id": "int", "ttl": 20}, {"_id": "long", "ttl": Int64(20)},
        {"_id": "fraction", "ttl": 20.5}, {"_id": "large", "ttl": Int64(2147483649)}, {"_id": "decimal", "ttl": Decimal128("20")},
        {"_id": "never", "ttl": -1}, {"_id": "zero", "ttl": 0},
    ])
    after = time.time()
    ids = lambda: sorted(d["_id"] for d in coll.find())
    sleep_until(before + 8)
    seen = ids()
    assert time.time() < before + 10, TOO_SLOW
    assert len(seen) == 8, seen
    sleep_until(after + 10.05)
    seen = ids()
    assert time.time() < before + 20, TOO_SLOW
    assert seen == ["double", "int", "long", "never"], seen
    coll.insert_one({"_id": "zero", "note": "an expired document blocks no key"})
    sleep_until(after + 20.05)
    seen = [i for i in ids() if i != "zero"]
    assert seen == ["never"], seen


def main():
    client.drop_database(db.name)
    slow = [threading.Thread(target=check, args=(body,)) for body in (ttl_of_datetimes, ttl_of_documents)]
    for thread in slow:
        thread.start()
    for body in (write_and_read, types, aggregation, cursors, sessions, bulk, indexes, vectors, words, find_and_modify, errors_and_stats, files):
        check(body)
    for thread in slow:
        thread.join()
    client.close()
    checks.done()


if __name__ == "__main__":
    main()
