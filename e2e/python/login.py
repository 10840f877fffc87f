"""PyMongo logs in, and is let do what its user may do."""

import os

import pymongo
from pymongo.auth_oidc import OIDCCallback, OIDCCallbackResult
from pymongo.errors import OperationFailure

import checks

NAME = "python"


def works(uri):
    with pymongo.MongoClient(uri) as client:
        client.e2e_login[NAME].insert_one({})
        assert client.e2e_login[NAME].find_one()


def refused(what, code=13):
    try:
        what()
    except OperationFailure as e:
        checks.same(e.code, code)
        return
    raise AssertionError("it was let in")


def roles():
    with pymongo.MongoClient(os.environ["EBB_URI"]) as root, pymongo.MongoClient(os.environ["EBB_AS"].replace("NAME", NAME)) as user:
        root[NAME].command("createUser", NAME, pwd=NAME, roles=["readWrite"])
        own = user[NAME].c
        own.insert_one({"a": 1})
        refused(lambda: user.e2e_login.c.find_one())
        refused(lambda: user[NAME].command("createUser", "other", pwd="x", roles=[]))
        root[NAME].command("revokeRolesFromUser", NAME, roles=["readWrite"])
        root[NAME].command("grantRolesToUser", NAME, roles=["read"])
        checks.same(own.find_one()["a"], 1)
        refused(lambda: own.insert_one({}))
        root[NAME].command("dropUser", NAME)
        refused(own.find_one)


class Person(OIDCCallback):
    def fetch(self, context):
        self.told = context.idp_info
        return OIDCCallbackResult(access_token=os.environ["EBB_TOKEN"])


def people():
    person = Person()
    with pymongo.MongoClient(os.environ["EBB_PEOPLE"], authMechanismProperties={"OIDC_HUMAN_CALLBACK": person}) as client:
        client.e2e_login[NAME].insert_one({})
        checks.same(person.told.clientId, "e2e")


def first(uri):
    with pymongo.MongoClient(uri) as client:
        client.admin.command("connectionStatus")


for i, uri in enumerate(os.environ["EBB_IN"].split("\n")):
    checks.check(f"logs in {i}", lambda: works(uri))
for i, uri in enumerate(os.environ["EBB_OUT"].split("\n")):
    checks.check(f"does not log in {i}", lambda: refused(lambda: first(uri), 18))
checks.check("roles change while a user is connected", roles)
if "EBB_PEOPLE" in os.environ:
    checks.check("is told where to get a token", people)
checks.done()
