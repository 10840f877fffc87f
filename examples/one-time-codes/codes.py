"""One-time codes: six digits that are good for five minutes, once, and for three guesses.

A code carries its own end, so codes of different lives lie in one collection. What has expired is hidden at that millisecond: no query has
to say `expires > now`, and none can forget to.

    MONGODB_URI=mongodb://127.0.0.1:27017 python codes.py
"""

import hashlib
import hmac
import os
import secrets
import time
from datetime import datetime, timedelta, timezone

from pymongo import MongoClient, ReturnDocument

GUESSES = 3


class Codes:
    def __init__(self, db):
        self.codes = db.codes
        self.codes.create_index("expires", expireAfterSeconds=0, hideExpired=True)

    def issue(self, user, seconds=300):
        """Makes a code for a user, in the place of the one before."""
        code = f"{secrets.randbelow(1_000_000):06}"
        salt = secrets.token_bytes(16)
        ends = datetime.now(timezone.utc) + timedelta(seconds=seconds)
        self.codes.replace_one({"_id": user}, {"hash": self._hash(salt, code), "salt": salt, "left": GUESSES, "expires": ends}, upsert=True)
        return code

    def redeem(self, user, code):
        """Says whether the code is good, and uses it up. Each guess counts before anybody looks at it."""
        found = self.codes.find_one_and_update(
            {"_id": user, "left": {"$gt": 0}}, {"$inc": {"left": -1}}, return_document=ReturnDocument.AFTER
        )
        if found is None or not hmac.compare_digest(found["hash"], self._hash(found["salt"], code)):
            return False
        return self.codes.delete_one({"_id": user, "hash": found["hash"]}).deleted_count == 1

    @staticmethod
    def _hash(salt, code):
        return hashlib.sha256(salt + code.encode()).digest()


def main():
    client = MongoClient(os.environ.get("MONGODB_URI", "mongodb://127.0.0.1:27017"))
    client.drop_database("example_codes")
    codes = Codes(client.example_codes)

    code = codes.issue("ada")
    assert codes.redeem("ada", code) and not codes.redeem("ada", code)
    print("a code is good once")

    code = codes.issue("ada")
    wrong = f"{(int(code) + 1) % 1_000_000:06}"
    assert not any(codes.redeem("ada", wrong) for _ in range(GUESSES)) and not codes.redeem("ada", code)
    print("three wrong guesses use it up")

    code = codes.issue("ada", seconds=1)
    time.sleep(1.1)
    assert not codes.redeem("ada", code) and codes.codes.count_documents({}) == 0
    print("and after its time nobody sees it")


if __name__ == "__main__":
    main()
