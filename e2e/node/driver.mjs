// The Node.js driver: ordinary life, and both kinds of TTL.
import assert from 'node:assert/strict';
import { Double, GridFSBucket, Int32, Long, MongoClient, ObjectId } from 'mongodb';
import { check, done, eventually, reclaim, refused, second, sleepUntil, uri } from './tap.mjs';

const client = new MongoClient(uri, { compressors: ['zlib'], appName: 'e2e' });
await client.connect();
const db = client.db('e2e_node');
await db.dropDatabase();

// The long waits go on beside everything else.
const slow = [expiryByModification(), expiryByDate()];

await check('write and read', async () => {
  const people = db.collection('people');
  const { insertedId } = await people.insertOne({ name: 'Ada', tags: ['a', 'b'], at: { city: 'London' } });
  assert.ok(insertedId instanceof ObjectId);
  await people.insertMany([{ name: 'Grace', n: 1 }, { name: 'Edsger', n: 2 }]);
  assert.equal((await people.findOne({ 'at.city': 'London' })).name, 'Ada');
  assert.deepEqual(await people.find({ n: { $gte: 1 } }, { projection: { _id: 0 } }).sort({ n: -1 }).toArray(), [{ name: 'Edsger', n: 2 }, { name: 'Grace', n: 1 }]);
  assert.equal((await people.updateMany({ n: { $exists: true } }, { $inc: { n: 10 }, $currentDate: { seen: true } })).modifiedCount, 2);
  assert.equal((await people.updateOne({ name: 'Nobody' }, { $set: { n: 0 } }, { upsert: true })).upsertedCount, 1);
  assert.equal((await people.replaceOne({ name: 'Nobody' }, { name: 'Somebody' })).modifiedCount, 1);
  assert.equal((await people.deleteMany({ name: 'Somebody' })).deletedCount, 1);
  assert.equal(await people.countDocuments(), 3);
  assert.equal(await people.estimatedDocumentCount(), 3);
  assert.deepEqual((await people.distinct('tags')).sort(), ['a', 'b']);
});

await check('types come back as they went', async () => {
  const types = db.collection('types', { promoteValues: false });
  const sent = { _id: 1, int: new Int32(1), long: Long.fromString('9007199254740993'), double: new Double(1), minusZero: new Double(-0), date: new Date(-1), nothing: null, list: [new Int32(1), 'x'] };
  await types.insertOne(sent);
  const got = await types.findOne({ _id: 1 });
  assert.equal(got.long.toString(), '9007199254740993');
  assert.equal(got.double._bsontype, 'Double');
  assert.ok(Object.is(got.minusZero.valueOf(), -0));
  assert.equal(got.date.getTime(), -1);
  assert.deepEqual(Object.keys(got), Object.keys(sent));
});

await check('aggregate', async () => {
  const sales = db.collection('sales');
  await sales.insertMany([{ item: 'a', qty: 2 }, { item: 'b', qty: 1 }, { item: 'a', qty: 5 }]);
  const got = await sales.aggregate([
    { $match: { qty: { $gt: 0 } } },
    { $group: { _id: '$item', qty: { $sum: '$qty' }, all: { $push: '$qty' } } },
    { $sort: { _id: 1 } },
    { $project: { qty: 1, all: 1, many: { $gt: [{ $size: '$all' }, 1] } } },
  ]).toArray();
  assert.deepEqual(got, [{ _id: 'a', qty: 7, all: [2, 5], many: true }, { _id: 'b', qty: 1, all: [1], many: false }]);
  const joined = await sales.aggregate([
    { $lookup: { from: 'sales', localField: 'item', foreignField: 'item', as: 'same' } },
    { $unwind: '$same' }, { $count: 'pairs' },
  ]).toArray();
  assert.deepEqual(joined, [{ pairs: 5 }]);
});

await check('cursors over several batches, closed early, killed', async () => {
  const many = db.collection('many');
  await many.insertMany(Array.from({ length: 2500 }, (_, i) => ({ _id: i, text: 'x'.repeat(100) })));
  let seen = 0;
  for await (const doc of many.find({}, { batchSize: 100 })) assert.equal(doc._id, seen++);
  assert.equal(seen, 2500);
  const early = many.find({}, { batchSize: 10 });
  await early.next();
  await early.close();
  const { cursor } = await db.command({ find: 'many', batchSize: 2 });
  const killed = await db.command({ killCursors: 'many', cursors: [cursor.id] });
  assert.equal(killed.cursorsKilled.length, 1);
  await refused(db.command({ getMore: Long.fromString(cursor.id.toString()), collection: 'many' }), 43, 'CursorNotFound');
});

await check('a session', async () => {
  await client.withSession(async (session) => {
    const coll = db.collection('session');
    await coll.insertOne({ _id: 1 }, { session });
    assert.equal((await coll.find({}, { session, batchSize: 1 }).toArray()).length, 1);
    assert.ok(session.id.id);
  });
});

await check('bulkWrite, ordered and not', async () => {
  const bulk = db.collection('bulk');
  const result = await bulk.bulkWrite([
    { insertOne: { document: { _id: 1 } } },
    { updateOne: { filter: { _id: 2 }, update: { $set: { a: 1 } }, upsert: true } },
    { replaceOne: { filter: { _id: 1 }, replacement: { a: 2 } } },
    { updateMany: { filter: {}, update: { $inc: { a: 1 } } } },
    { deleteOne: { filter: { _id: 2 } } },
  ]);
  assert.deepEqual([result.insertedCount, result.upsertedCount, result.modifiedCount, result.deletedCount], [1, 1, 3, 1]);
  const error = await refused(bulk.bulkWrite([{ insertOne: { document: { _id: 1 } } }, { insertOne: { document: { _id: 3 } } }], { ordered: false }), 11000);
  assert.equal(error.insertedCount, 1);
  assert.equal(error.writeErrors[0].index, 0);
});

await check('the client-wide bulkWrite', async () => {
  const result = await client.bulkWrite([
    { name: 'insertOne', namespace: 'e2e_node.one', document: { _id: 1 } },
    { name: 'updateOne', namespace: 'e2e_node.two', filter: { _id: 1 }, update: { $set: { a: 1 } }, upsert: true },
  ], { verboseResults: true });
  assert.deepEqual([result.insertedCount, result.upsertedCount], [1, 1]);
});

await check('indexes', async () => {
  const coll = db.collection('indexes');
  assert.equal(await coll.createIndex({ email: 1 }, { unique: true }), 'email_1');
  assert.deepEqual(await coll.createIndexes([{ key: { a: 1, b: -1 } }, { key: { c: 1 }, sparse: true, name: 'mine' }]), ['a_1_b_-1', 'mine']);
  assert.deepEqual((await coll.indexes()).map((i) => i.name).sort(), ['_id_', 'a_1_b_-1', 'email_1', 'mine']);
  await coll.insertOne({ email: 'a@x' });
  const error = await refused(coll.insertOne({ email: 'a@x' }), 11000);
  assert.deepEqual(error.keyPattern, { email: 1 });
  assert.deepEqual(error.keyValue, { email: 'a@x' });
  const plan = await coll.find({ email: 'a@x' }).explain('executionStats');
  assert.equal(plan.executionStats.totalKeysExamined, 1);
  assert.equal(plan.queryPlanner.winningPlan.stage, 'EXPRESS_IXSCAN');
  assert.equal(plan.queryPlanner.winningPlan.indexName, 'email_1');
  await coll.dropIndex('mine');
  await refused(coll.dropIndex('mine'), 27, 'IndexNotFound');
});

await check('findOneAnd…', async () => {
  const coll = db.collection('fam');
  assert.equal(await coll.findOneAndUpdate({ _id: 1 }, { $inc: { n: 1 } }), null);
  assert.equal((await coll.findOneAndUpdate({ _id: 1 }, { $inc: { n: 1 } }, { upsert: true, returnDocument: 'after' })).n, 1);
  assert.equal((await coll.findOneAndReplace({ _id: 1 }, { n: 7 }, { sort: { n: 1 } })).n, 1);
  assert.equal((await coll.findOneAndDelete({ _id: 1 })).n, 7);
});

await check('errors keep their names', async () => {
  await refused(db.command({ noSuchCommand: 1 }), 59, 'CommandNotFound');
  await refused(db.collection('people').find({ a: { $noSuch: 1 } }).toArray(), 2, 'BadValue');
  await refused(db.collection('people').updateOne({ name: 'Ada' }, { $noSuch: { a: 1 } }), 9);
  await refused(db.createCollection('people', { capped: true, size: 4096 }), 48, 'NamespaceExists');
  await refused(db.collection('people').aggregate([{ $noSuch: {} }]).toArray(), 40324);
});

await check('collections and stats', async () => {
  assert.ok((await db.listCollections({}, { nameOnly: true }).toArray()).some((c) => c.name === 'people'));
  assert.ok((await client.db().admin().listDatabases()).databases.some((d) => d.name === 'e2e_node'));
  const [{ storageStats }] = await db.collection('people').aggregate([{ $collStats: { storageStats: {} } }]).toArray();
  assert.equal(storageStats.count, 3);
  assert.equal((await db.collection('people').rename('persons')).collectionName, 'persons');
});

await check('GridFS', async () => {
  const bucket = new GridFSBucket(db, { chunkSizeBytes: 1024 });
  const data = Buffer.alloc(10_000, 'ebb');
  const upload = bucket.openUploadStream('tide.bin', { metadata: { kind: 'test' } });
  await new Promise((ok, fail) => upload.on('finish', ok).on('error', fail).end(data));
  const parts = [];
  for await (const part of bucket.openDownloadStream(upload.id)) parts.push(part);
  assert.ok(Buffer.concat(parts).equals(data));
  await bucket.delete(upload.id);
  assert.equal(await db.collection('fs.chunks').countDocuments(), 0);
});

await check('many at once', async () => {
  const coll = db.collection('parallel');
  await Promise.all(Array.from({ length: 200 }, (_, i) => coll.updateOne({ _id: i % 10 }, { $inc: { n: 1 } }, { upsert: true })));
  const [{ n }] = await coll.aggregate([{ $group: { _id: null, n: { $sum: '$n' } } }]).toArray();
  assert.equal(n, 200);
});

await Promise.all(slow);
await client.close();
done();

// Ten seconds after the last modification by default, twenty by the document's own word.
function expiryByModification() {
  return check('TTL on _ts with ttl in documents', async () => {
    const coll = db.collection('by_ts');
    assert.equal(await coll.createIndex({ _ts: 1 }, { expireAfterSeconds: 10 }), '_ts_1');
    const before = Date.now();
    await coll.insertMany([
      { _id: 'double', ttl: new Double(20) }, { _id: 'int', ttl: new Int32(20) }, { _id: 'long', ttl: Long.fromNumber(20) },
      { _id: 'never', ttl: -1 }, { _id: 'short', ttl: 1 },
      { _id: 'fraction', ttl: 20.5 }, { _id: 'large', ttl: Long.fromString('2147483649') }, { _id: 'text', ttl: '20' }, { _id: 'none' },
    ]);
    const after = Date.now();
    const ids = async () => (await coll.find({}, { projection: { _id: 1 } }).sort({ _id: 1 }).toArray()).map((d) => d._id);

    await sleepUntil(after + second + 50);
    assert.ok(!(await ids()).includes('short'), 'one second');
    await coll.insertOne({ _id: 'short', note: 'an expired document blocks no key' });
    await coll.deleteOne({ _id: 'short' });

    await sleepUntil(before + 6 * second);
    assert.equal((await coll.updateOne({ _id: 'none' }, { $set: { touched: true } })).modifiedCount, 1);
    const touched = Date.now();
    assert.equal((await coll.updateOne({ _id: 'text' }, { $set: { ttl: '20' } })).modifiedCount, 0);
    assert.ok(touched < before + 10 * second, 'this machine is too slow to say');

    await sleepUntil(after + 10 * second + 50);
    assert.deepEqual(await ids(), ['double', 'int', 'long', 'never', 'none']);
    assert.ok(Date.now() < before + 16 * second, 'this machine is too slow to say');

    await sleepUntil(touched + 10 * second + 50);
    assert.deepEqual(await ids(), ['double', 'int', 'long', 'never']);
    assert.ok(Date.now() < before + 20 * second, 'this machine is too slow to say');

    await sleepUntil(after + 20 * second + 50);
    assert.deepEqual(await ids(), ['never']);
  });
}

// A date, and nothing is visible of the rule until the document is deleted: as MongoDB does, but promptly.
function expiryByDate() {
  return check('TTL on a date', async () => {
    const coll = db.collection('by_date');
    await coll.createIndex({ at: 1 }, { expireAfterSeconds: 2 });
    const at = Date.now();
    await coll.insertMany([{ _id: 'now', at: new Date(at) }, { _id: 'past', at: new Date(0) }, { _id: 'future', at: new Date(at + 3600 * second) }, { _id: 'number', at: 0 }]);
    await eventually(reclaim, 'the past goes', async () => (await coll.countDocuments({ _id: 'past' })) === 0);
    const seen = await coll.countDocuments({ _id: 'now' });
    if (Date.now() < at + 2 * second) assert.equal(seen, 1, 'before its time');
    await eventually(reclaim, 'after two seconds', async () => (await coll.countDocuments({ _id: 'now' })) === 0);
    assert.ok(Date.now() >= at + 2 * second, 'gone before its time');
    assert.equal(await coll.countDocuments(), 2);
  });
}
