// Where Ebb differs from MongoDB on purpose: the numbers are those of docs/differences.md.
load('mongosh/tap.js');
db = db.getSiblingDB('e2e_differences');
db.dropDatabase();

const second = 1000;
const reclaim = 10 * second;
const skew = 50; // over TiKV the server goes by the cluster's time, which may be a little behind
const create = (coll, key, options) => ({ createIndexes: coll, indexes: [{ key, name: Object.keys(key).join('_'), ...options }] });

check('difference 1: a TTL index on _ts counts from the last modification', () => {
  db.d1.createIndex({ _ts: 1 }, { expireAfterSeconds: 2 });
  const before = Date.now();
  db.d1.insertMany([{ _id: 'left alone', _ts: new Date(0) }, { _id: 'touched' }, { _id: 'not changed', a: 1 }]);
  const after = Date.now();
  same(db.d1.findOne({ _id: 'left alone' })._ts, new Date(0), "a client's own field _ts is data");
  sleepUntil(before + 1 * second);
  same(db.d1.updateOne({ _id: 'touched' }, { $set: { a: 1 } }).modifiedCount, 1);
  same(db.d1.updateOne({ _id: 'not changed' }, { $set: { a: 1 } }).modifiedCount, 0);
  const touched = Date.now();
  sleepUntil(after + 2 * second);
  const left = db.d1.distinct('_id');
  if (Date.now() < before + 3 * second) same(left, ['touched']);
  sleepUntil(touched + 2 * second);
  same(db.d1.countDocuments({}), 0);
});

check('difference 2: the field ttl of a document stands above the collection', () => {
  db.d2.createIndex({ _ts: 1 }, { expireAfterSeconds: 3600 });
  db.d2.insertMany([{ _id: 1, ttl: 1 }, { _id: 2, ttl: 1.5 }, { _id: 3, ttl: '1' }, { _id: 4, ttl: 0 }, { _id: 5, ttl: -1 }, { _id: 6, a: { ttl: 1 } }]);
  db.d2_plain.insertOne({ _id: 1, ttl: 1 });
  sleep(second);
  same(db.d2.distinct('_id'), [2, 3, 4, 5, 6]);
  same(db.d2_plain.countDocuments({}), 1, 'without a TTL index on _ts it is data');
});

check('difference 3: createIndexes on _ts: -1, a new value in place, _t in the reply', () => {
  same(db.runCommand(create('d3', { _ts: 1 }, { expireAfterSeconds: -1 }))._t, 'CreateIndexesResponse');
  same(db.d3.getIndexes()[1].expireAfterSeconds, -1);
  same(db.runCommand(create('d3', { _ts: 1 }, { expireAfterSeconds: 10 })).ok, 1);
  same(db.d3.getIndexes()[1].expireAfterSeconds, 10);
  same(db.runCommand(create('d3', { other: 1 }))._t, undefined);
  refused(db, create('d3', { a: 1 }, { expireAfterSeconds: -1 }), 67, 'CannotCreateIndex');
  refused(db, create('d3', { _ts: 1 }, { expireAfterSeconds: 0 }), 67, 'CannotCreateIndex');
  same(db.runCommand(create('d3_plain', { _ts: 1 })).ok, 1);
  same(db.d3_plain.getIndexes()[1].expireAfterSeconds, undefined, 'a plain index on _ts');
});

check('difference 4: what is expired by _ts is hidden from that moment on, for writers too', () => {
  db.d4.createIndex({ _ts: 1 }, { expireAfterSeconds: 1 });
  db.d4.createIndex({ u: 1 }, { unique: true });
  db.d4.insertOne({ _id: 1, u: 1, list: [1] });
  sleep(second);
  same(db.d4.find().toArray(), []);
  same(db.d4.updateOne({ _id: 1 }, { $set: { a: 1 } }).matchedCount, 0);
  same(db.d4.findOneAndDelete({ _id: 1 }), null);
  same(db.d4.insertOne({ _id: 2, u: 1 }).acknowledged, true, 'it blocks no unique key');
  same(db.d4.updateOne({ _id: 1 }, { $set: { u: 2 } }, { upsert: true }).upsertedCount, 1);
});

check('difference 5: hideExpired does the same for a TTL on a date', () => {
  same(db.runCommand(create('d5', { at: 1 }, { expireAfterSeconds: 0, hideExpired: true })).ok, 1);
  same(db.d5.getIndexes()[1].hideExpired, true);
  const at = new Date(Date.now() + second);
  db.d5.insertOne({ _id: 1, at });
  sleepUntil(at.getTime() + skew);
  same(db.d5.countDocuments({}), 0);
  same(db.adminCommand({ getParameter: 1, ttlHideExpired: 1 }).ttlHideExpired, false);
  refused(db, create('d5', { b: 1 }, { hideExpired: true }), 197, 'InvalidIndexSpecificationOption');
});

check('difference 6: reclaim is prompt', () => {
  const parameters = db.adminCommand({ getParameter: 1, ttlMonitorSleepSecs: 1, ttlMonitorPrecise: 1 });
  same([parameters.ttlMonitorSleepSecs, parameters.ttlMonitorPrecise], [60, true]);
  db.d6.createIndex({ at: 1 }, { expireAfterSeconds: 0 });
  db.d6.insertOne({ at: new Date(Date.now() + second) });
  eventually(second + reclaim, 'deleted at its time, not at the next full minute', () => db.d6.countDocuments({}) === 0);
});

check('difference 7: what has expired never comes back', () => {
  for (const [name, loosen] of Object.entries({
    dropped: () => db.dropped.dropIndex('_ts_1'),
    modified: () => db.runCommand({ collMod: 'modified', index: { name: '_ts_1', expireAfterSeconds: 3600 } }),
    again: () => db.again.createIndex({ _ts: 1 }, { expireAfterSeconds: 3600 }),
  })) {
    db[name].createIndex({ _ts: 1 }, { expireAfterSeconds: 1 });
    db[name].insertOne({ _id: 'old' });
    sleep(second);
    db[name].insertOne({ _id: 'young' });
    loosen();
    same(db[name].distinct('_id'), ['young'], name);
  }
});

check('difference 8: collMod with NaN is refused', () => {
  db.d8.createIndex({ at: 1 }, { expireAfterSeconds: 3600 });
  db.d8.insertOne({ at: new Date() });
  refused(db, { collMod: 'd8', index: { name: 'at_1', expireAfterSeconds: NaN } }, 72, 'InvalidOptions');
  same([db.d8.getIndexes()[1].expireAfterSeconds, db.d8.countDocuments({})], [3600, 1]);
  same(db.adminCommand({ getParameter: 1, ttlCollModNaNIsZero: 1 }).ttlCollModNaNIsZero, false);
});

check('difference 9: no TTL on a capped collection', () => {
  db.createCollection('d9', { capped: true, size: 4096 });
  refused(db, create('d9', { at: 1 }, { expireAfterSeconds: 10 }), 67, 'CannotCreateIndex');
  same(db.adminCommand({ getParameter: 1, ttlOnCapped: 1 }).ttlOnCapped, false);
});

check('difference 10: usePowerOf2Sizes is accepted on a collection with a TTL', () => {
  db.d10.createIndex({ at: 1 }, { expireAfterSeconds: 10 });
  same(db.runCommand({ collMod: 'd10', usePowerOf2Sizes: false }).ok, 1);
  same(db.d10.stats().userFlags, 1);
  db.createCollection('d10_plain');
  refused(db, { collMod: 'd10_plain', usePowerOf2Sizes: false }, 40415, 'IDLUnknownField');
  same(db.d10_plain.stats().userFlags, undefined);
});

check('difference 11: ebbTTL and ebbVersion', () => {
  holds(typeof db.adminCommand({ buildInfo: 1 }).ebbVersion === 'string', 'ebbVersion');
  db.d11.createIndex({ at: 1 }, { expireAfterSeconds: 10 });
  db.d11.insertOne({ _id: 1, at: 'not a date' });
  same(db.adminCommand({ ebbTTL: 1 }).ok, 1);
  same(db.runCommand({ ebbTTL: 'd11' }).ok, 1);
  same(db.runCommand({ ebbTTL: 'd11', explain: 1 }).ok, 1);
  const until = new Date(Date.now() + 3600e3);
  const [by] = db.runCommand({ ebbTTL: 'd11', forecast: { buckets: 6, until } }).indexes;
  same(by.buckets.map((b) => Number(b.count)), [0, 0, 0, 0, 0, 0]);
  same(Number(by.never), 1);
  db.d11.insertOne({ _id: 2, since: new Date(0) });
  const wanted = { createIndexes: 'd11', indexes: [{ key: { since: 1 }, name: 'since_1', expireAfterSeconds: 60 }] };
  same(Number(db.runCommand({ ...wanted, dryRun: true }).wouldExpire), 1);
  db.adminCommand({ setParameter: 1, ttlMassExpiryGuard: 0.4 });
  refused(db, wanted, 20, 'IllegalOperation');
  db.adminCommand({ setParameter: 1, ttlMassExpiryGuard: 0 });
  same(db.d11.countDocuments(), 2);
});

done();
