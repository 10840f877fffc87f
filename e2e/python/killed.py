"""PyMongo whose only member is killed under it: change streams, sessions and transactions go on where they were."""

import os
import threading
import time
import urllib.request

import pymongo
from pymongo.read_concern import ReadConcern
from pymongo.write_concern import WriteConcern

import checks
from checks import same

PATIENCE = 30  # seconds; a slow machine needs them


def kill():
    """Kills the server, and returns when it is there again."""
    with urllib.request.urlopen(os.environ["EBB_KILL_URL"], timeout=60) as answer:
        same(answer.status, 200)


client = pymongo.MongoClient(os.environ["EBB_URI"])
db = client.e2e_python_killed
durable = WriteConcern("majority")


def take(stream, count):
    """The ids of the next events of a stream, which must come in time."""
    ids, end = [], time.monotonic() + PATIENCE
    while len(ids) < count:
        event = stream.try_next()
        if event is not None:
            ids.append(event["documentKey"]["_id"])
        assert time.monotonic() < end, f"only {ids} came of {count}"
    return ids


class Listener(threading.Thread):
    """Reads a stream until it has seen the document "end"."""

    def __init__(self, coll):
        super().__init__(daemon=True)
        self.stream = coll.watch(max_await_time_ms=500)
        self.ids, self.tokens, self.error = [], {}, None
        self.start()

    def run(self):
        try:
            with self.stream as stream:
                for event in stream:
                    key = event["documentKey"]["_id"]
                    self.ids.append(key)
                    self.tokens[key] = event["_id"]
                    if key == "end":
                        return
        except Exception as error:
            self.error = error

    def finish(self):
        self.join(PATIENCE)
        assert self.error is None, repr(self.error)
        assert not self.is_alive(), f"the stream has stopped at {self.ids}"
        return self.ids


def streams():
    coll = db.create_collection("things", write_concern=durable)
    listener = Listener(coll)
    with client.start_session() as session:
        session.start_transaction()
        coll.insert_one({"_id": "half"}, session=session)  # never committed
        with client.start_session() as first:
            for i in range(10):
                coll.insert_one({"_id": i}, session=first)
            before = first.operation_time
        kill()
    for i in range(10, 20):
        coll.insert_one({"_id": i})
    coll.insert_one({"_id": "end"})
    all_ids = [*range(20), "end"]
    same(listener.finish(), all_ids)
    for after in (3, 9, 12):  # of events before the server died, and after it
        with coll.watch(resume_after=listener.tokens[after], max_await_time_ms=500) as stream:
            same(take(stream, 20 - after), all_ids[after + 1 :])
        with coll.watch(start_after=listener.tokens[after], max_await_time_ms=500) as stream:
            same(take(stream, 20 - after), all_ids[after + 1 :])
    with coll.watch(start_at_operation_time=before, max_await_time_ms=500) as stream:
        same(take(stream, 12), all_ids[9:])
    same(coll.count_documents({}), 21)


def causal():
    coll = db.get_collection("causal", read_concern=ReadConcern("majority"), write_concern=durable)
    with client.start_session(causal_consistency=True) as session:
        coll.insert_one({"_id": 1, "n": 1}, session=session)
        cluster_time, operation_time = session.cluster_time["clusterTime"], session.operation_time
        kill()
        same(coll.find_one({"_id": 1}, session=session), {"_id": 1, "n": 1})
        coll.update_one({"_id": 1}, {"$inc": {"n": 1}}, session=session)
        assert session.operation_time > operation_time and session.cluster_time["clusterTime"] > cluster_time
        with client.start_session(causal_consistency=True) as other:  # one that has heard of it elsewhere
            other.advance_cluster_time(session.cluster_time)
            other.advance_operation_time(session.operation_time)
            same(coll.find_one({"_id": 1}, session=other)["n"], 2)


def transaction():
    one, other = db.one, db.other
    for coll in (one, other):
        coll.insert_one({"_id": 1, "n": 0})
    tries = []

    def body(session):
        tries.append(1)
        one.update_one({"_id": 1}, {"$inc": {"n": 1}}, session=session)
        if len(tries) == 1:
            kill()
        other.update_one({"_id": 1}, {"$inc": {"n": 1}}, session=session)
        return "moved"

    with client.start_session() as session:
        same(session.with_transaction(body, read_concern=ReadConcern("snapshot"), write_concern=durable), "moved")
    same([len(tries), one.find_one({"_id": 1})["n"], other.find_one({"_id": 1})["n"]], [2, 1, 1])


checks.check("streams go on, each event once", streams)
checks.check("a causally consistent session reads what it has written", causal)
checks.check("with_transaction begins again", transaction)
client.close()
checks.done()
