// A cache: an entry lives for a minute after it was written or, where it says so, for a time of its own.
//
// A TTL index on _ts counts from the last change of a document, and the field ttl of a document overrides it. What is too old is not found,
// so the cache is never stale, and there is no sweeper to run. `node cache.mjs`

import assert from "node:assert/strict";
import { MongoClient } from "mongodb";

export class Cache {
  constructor(collection) {
    this.entries = collection;
  }

  static async open(db, name, seconds) {
    const c = db.collection(name);
    await c.createIndex({ _ts: 1 }, { expireAfterSeconds: seconds });
    return new Cache(c);
  }

  /** The value of a key, which `make` makes where it is not there or too old. `seconds` is how long it lives then, where that is not the cache's own time. */
  async get(key, make, seconds) {
    const found = await this.entries.findOne({ _id: key });
    if (found) return found.value;
    const value = await make(key);
    await this.entries.replaceOne({ _id: key }, { value, made: new Date(), ...(seconds && { ttl: seconds }) }, { upsert: true });
    return value;
  }

  async drop(key) {
    await this.entries.deleteOne({ _id: key });
  }
}

const client = new MongoClient(process.env.MONGODB_URI ?? "mongodb://127.0.0.1:27017");
const db = client.db("example_cache");
await db.dropDatabase();
const cache = await Cache.open(db, "pages", 2);
let made = 0;
const make = async (key) => `${key} number ${++made}`;
const wait = (ms) => new Promise((done) => setTimeout(done, ms));

assert.equal(await cache.get("home", make), "home number 1");
assert.equal(await cache.get("home", make), "home number 1");
console.log("made once, and found");
assert.equal(await cache.get("news", make, 1), "news number 2");
await wait(1100);
assert.equal(await cache.get("news", make, 1), "news number 3");
assert.equal(await cache.get("home", make), "home number 1");
console.log("news is old after a second");
await wait(1200);
assert.equal(await cache.get("home", make), "home number 4");
await cache.drop("home");
assert.equal(await cache.get("home", make), "home number 5");
console.log("home after two, or when it is dropped");
await client.close();
