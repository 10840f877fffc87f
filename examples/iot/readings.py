"""Readings of sensors: raw ones for a day, their means by the minute for a year.

Raw readings go into a time series, means into a collection of their own. Both end by themselves. What a time series holds goes by cells, as
long as bucketMaxSpanSeconds says: an hour suits readings that live for a day. Here a day lasts two seconds, and a cell one.

    MONGODB_URI=mongodb://127.0.0.1:27017 python readings.py
"""

import os
import random
import time
from datetime import datetime, timedelta, timezone

from pymongo import MongoClient


def prepare(db, raw_seconds, mean_seconds, cell_seconds):
    db.create_collection("readings", expireAfterSeconds=raw_seconds, timeseries={
        "timeField": "at", "metaField": "sensor", "bucketMaxSpanSeconds": cell_seconds, "bucketRoundingSeconds": cell_seconds,
    })
    db.means.create_index("minute", expireAfterSeconds=mean_seconds)


def condense(db, since):
    """Writes the means of the minutes since then, again where they are there already."""
    db.readings.aggregate([
        {"$match": {"at": {"$gte": since}}},
        {"$group": {
            "_id": {"sensor": "$sensor", "minute": {"$dateTrunc": {"date": "$at", "unit": "minute"}}},
            "mean": {"$avg": "$celsius"}, "low": {"$min": "$celsius"}, "high": {"$max": "$celsius"}, "n": {"$sum": 1},
        }},
        {"$set": {"minute": "$_id.minute", "sensor": "$_id.sensor"}},
        {"$merge": {"into": "means", "whenMatched": "replace"}},
    ])


def main():
    client = MongoClient(os.environ.get("MONGODB_URI", "mongodb://127.0.0.1:27017"), tz_aware=True)
    client.drop_database("example_iot")
    db = client.example_iot
    prepare(db, raw_seconds=2, mean_seconds=365 * 24 * 3600, cell_seconds=1)

    now = datetime.now(timezone.utc)
    sensors = ["roof", "cellar", "street"]
    db.readings.insert_many([
        {"sensor": s, "at": now - timedelta(milliseconds=10 * i), "celsius": 20 + random.random()} for s in sensors for i in range(100)
    ])
    condense(db, now - timedelta(minutes=1))
    total = sum(m["n"] for m in db.means.find())
    assert total == 300 and 20 <= db.means.find_one({"sensor": "roof"})["mean"] <= 21
    print("300 readings, condensed to", db.means.count_documents({}), "means")

    ends = time.monotonic() + 20
    while db.readings.count_documents({}) > 0:
        assert time.monotonic() < ends, "readings are still there"
        time.sleep(0.1)
    assert sum(m["n"] for m in db.means.find()) == 300
    print("the readings are gone, the means stay")


if __name__ == "__main__":
    main()
