"""PyMongo with a replica set of one, by the set's name and directly: transactions, their conflicts, and sessions."""

import os
import threading

import pymongo
from pymongo.errors import OperationFailure
from pymongo.read_concern import ReadConcern
from pymongo.write_concern import WriteConcern

import checks


def run(how, client):
    db = client["e2e_python_" + ("direct" if how == "directly" else "set")]
    accounts, savings = db.accounts, db.savings
    accounts.insert_one({"_id": 1, "balance": 100})
    savings.insert_one({"_id": 1, "balance": 0})

    def balances():
        return [c.find_one({"_id": 1})["balance"] for c in (accounts, savings)]

    def move(amount):
        def body(session):
            accounts.update_one({"_id": 1}, {"$inc": {"balance": -amount}}, session=session)
            savings.update_one({"_id": 1}, {"$inc": {"balance": amount}}, session=session)
            if accounts.find_one({"_id": 1}, session=session)["balance"] < 0:
                raise ValueError("not enough")

        with client.start_session() as session:
            session.with_transaction(body, read_concern=ReadConcern("snapshot"), write_concern=WriteConcern("majority"))

    def primary():
        hello = client.admin.command("hello")
        assert hello["setName"] == "e2e" and hello["isWritablePrimary"], hello
        assert hello["hosts"] == [hello["me"]] and hello["primary"] == hello["me"], hello

    def transaction():
        move(30)
        assert balances() == [70, 30]
        try:
            move(500)
            raise AssertionError("too much was moved")
        except ValueError:
            pass
        assert balances() == [70, 30]

    def conflict():
        with client.start_session() as one, client.start_session() as other:
            one.start_transaction()
            other.start_transaction()
            accounts.update_one({"_id": 1}, {"$inc": {"balance": -1}}, session=one)
            try:
                accounts.update_one({"_id": 1}, {"$inc": {"balance": -2}}, session=other)
                raise AssertionError("two transactions have changed one document")
            except OperationFailure as error:
                assert error.code == 112 and error.has_error_label("TransientTransactionError"), repr(error)
            other.abort_transaction()
            one.commit_transaction()
        assert balances() == [69, 30]

    def at_once():
        threads = [threading.Thread(target=move, args=(1,)) for _ in range(10)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert balances() == [59, 40]

    def causal():
        with client.start_session(causal_consistency=True) as session:
            savings.insert_one({"_id": 2}, session=session)
            assert session.operation_time is not None and session.cluster_time is not None
            majority = savings.with_options(read_concern=ReadConcern("majority"))
            assert majority.find_one({"_id": 2}, session=session) == {"_id": 2}

    for name, body in (("the primary of the set", primary), ("with_transaction over two collections", transaction),
                       ("a conflict has its label", conflict), ("ten transfers at once", at_once), ("a causally consistent session", causal)):
        checks.check(f"{how}: {name}", body)


for way, uri in (("by name", os.environ["EBB_URI"]), ("directly", os.environ["EBB_DIRECT_URI"])):
    with pymongo.MongoClient(uri) as mongo:
        run(way, mongo)
checks.done()
