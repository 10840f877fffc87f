"""PyMongo over TLS, with and without a certificate, and by the Unix domain socket."""

import os

import pymongo
from pymongo.errors import ConnectionFailure, OperationFailure

import checks


def works(uri):
    with pymongo.MongoClient(uri) as client:
        docs = client.e2e_tls.python
        docs.delete_many({})
        docs.insert_many([{"_id": i, "pad": "x" * (i * 1000)} for i in range(50)])
        got = list(docs.find().sort("_id"))
        checks.same((len(got), len(got[49]["pad"])), (50, 49_000))
        return client.admin.command("whatsmyuri")["you"]


def refused(uri):
    with pymongo.MongoClient(uri, serverSelectionTimeoutMS=500) as client:
        try:
            client.admin.command("ping")
        except (ConnectionFailure, OperationFailure):
            return
    raise AssertionError("it was let in")


checks.check("over TLS with a certificate", lambda: works(os.environ["EBB_URI"]))
checks.check("refused without a certificate", lambda: refused(os.environ["EBB_BARE"]))
checks.check("refused without TLS", lambda: refused(os.environ["EBB_PLAIN"]))
checks.check("logged in by the certificate", lambda: works(os.environ["EBB_X509"]))
checks.check("not logged in by a certificate of no user", lambda: refused(os.environ["EBB_STRANGER"]))
checks.check("without a certificate where that is allowed", lambda: works(os.environ["EBB_OPEN"]))
checks.check("by the Unix domain socket", lambda: checks.same(works(os.environ["EBB_SOCKET"]), "anonymous unix socket:27017"))
checks.done()
