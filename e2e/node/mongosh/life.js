// A day in the shell: the helpers that people type without thinking what command is behind them.
load('mongosh/tap.js');
db = db.getSiblingDB('e2e_shell_life');
db.dropDatabase();

check('who is there', () => {
  const hello = db.hello();
  same(hello.isWritablePrimary, true);
  holds(hello.maxWireVersion >= 25, `maxWireVersion ${hello.maxWireVersion}`);
  same(hello.maxBsonObjectSize, 16777216);
  const build = db.adminCommand({ buildInfo: 1 });
  holds(/^8\.2\./.test(build.version), build.version);
  holds(build.ebbVersion.length > 0, 'ebbVersion');
  same(db.version(), build.version);
  same(db.adminCommand({ ping: 1 }).ok, 1);
  holds(db.serverStatus().metrics.ttl.passes !== undefined, 'metrics.ttl');
  holds(db.hostInfo().system !== undefined, 'hostInfo');
  holds(db.currentOp(true).inprog.length > 0, 'currentOp');
  same(db.adminCommand({ getParameter: 1, ttlMonitorSleepSecs: 1 }).ttlMonitorSleepSecs, 60);
});

check('insert, find, sort, project', () => {
  same(db.people.insertOne({ _id: 1, name: 'Ada', born: 1815 }).insertedId, 1);
  same(Object.keys(db.people.insertMany([{ _id: 2, name: 'Grace', born: 1906 }, { _id: 3, name: 'Edsger', born: 1930 }]).insertedIds).length, 2);
  same(db.people.find({ born: { $gt: 1900 } }, { _id: 0, name: 1 }).sort({ born: -1 }).toArray(), [{ name: 'Edsger' }, { name: 'Grace' }]);
  same(db.people.findOne({ name: /^A/ }), { _id: 1, name: 'Ada', born: 1815 });
  same(db.people.find().skip(1).limit(1).toArray().length, 1);
  same(db.people.distinct('name').sort(), ['Ada', 'Edsger', 'Grace']);
  same(db.people.estimatedDocumentCount(), 3);
});

check('update, replace, upsert, delete', () => {
  const updated = db.people.updateOne({ _id: 1 }, { $set: { language: 'notes' }, $inc: { visits: 1 } });
  same([updated.matchedCount, updated.modifiedCount], [1, 1]);
  same(db.people.updateMany({}, { $push: { tags: 'seen' } }).modifiedCount, 3);
  same(db.people.updateOne({ _id: 1 }, { $set: { language: 'notes' } }).modifiedCount, 0);
  same(db.people.replaceOne({ _id: 3 }, { name: 'Dijkstra' }).modifiedCount, 1);
  same(db.people.updateOne({ _id: 9 }, { $setOnInsert: { name: 'Barbara' } }, { upsert: true }).insertedId, 9);
  same(db.people.deleteOne({ _id: 9 }).deletedCount, 1);
  same(db.people.deleteMany({ tags: 'never' }).deletedCount, 0);
});

check('findAndModify and its kin', () => {
  same(db.people.findOneAndUpdate({ _id: 2 }, { $set: { born: 1907 } }, { returnDocument: 'after' }).born, 1907);
  same(db.people.findAndModify({ query: { _id: 2 }, update: { $set: { born: 1906 } } }).born, 1907);
  same(db.people.findOneAndDelete({ _id: 3 }).name, 'Dijkstra');
});

check('aggregate', () => {
  db.sales.insertMany([
    { item: 'a', qty: 2, price: 10 }, { item: 'b', qty: 1, price: 20 }, { item: 'a', qty: 5, price: 10 },
  ]);
  const totals = db.sales.aggregate([
    { $group: { _id: '$item', total: { $sum: { $multiply: ['$qty', '$price'] } }, n: { $sum: 1 } } },
    { $sort: { total: -1 } },
  ]).toArray();
  same(totals, [{ _id: 'a', total: 70, n: 2 }, { _id: 'b', total: 20, n: 1 }]);
  same(db.sales.aggregate([{ $count: 'n' }]).toArray(), [{ n: 3 }]);
});

check('a cursor over several batches', () => {
  db.many.insertMany(Array.from({ length: 1000 }, (_, i) => ({ _id: i })));
  const cursor = db.many.find().batchSize(100);
  let sum = 0;
  while (cursor.hasNext()) sum += cursor.next()._id;
  same(sum, 499500);
});

check('indexes and explain', () => {
  same(db.many.createIndex({ a: 1, b: -1 }), 'a_1_b_-1');
  same(db.people.createIndex({ name: 1 }, { unique: true }), 'name_1');
  same(db.many.getIndexes(), [{ v: 2, key: { _id: 1 }, name: '_id_' }, { v: 2, key: { a: 1, b: -1 }, name: 'a_1_b_-1' }]);
  const plan = db.many.find({ a: 7 }).explain().queryPlanner.winningPlan;
  same([plan.stage, plan.inputStage.stage, plan.inputStage.indexName], ['FETCH', 'IXSCAN', 'a_1_b_-1']);
  const scan = db.many.find({ c: 1 }).explain('executionStats');
  same(scan.queryPlanner.winningPlan.stage, 'COLLSCAN');
  same([scan.executionStats.nReturned, scan.executionStats.totalDocsExamined], [0, 1000]);
  db.many.dropIndex('a_1_b_-1');
  same(db.many.getIndexes().length, 1);
});

check('a duplicate key has its code', () => {
  refused(db, { createIndexes: 'people', indexes: [{ key: { name: 1 }, name: 'name_1' }] }, 86, 'IndexKeySpecsConflict');
  let error = {};
  try {
    db.people.insertOne({ name: 'Ada' });
  } catch (e) {
    error = e;
  }
  same(error.code, 11000);
  holds(/E11000 duplicate key error collection: e2e_shell_life\.people index: name_1 dup key: { name: "Ada" }/.test(error.message), error.message);
});

check('unknown commands and fields are refused', () => {
  refused(db, { thereIsNoSuchCommand: 1 }, 59, 'CommandNotFound');
  refused(db, { find: 'people', thereIsNoSuchField: 1 }, 40415, 'IDLUnknownField');
  refused(db, { find: 'people', filter: { $nope: 1 } }, 2, 'BadValue');
});

check('collections, databases, stats', () => {
  same(db.getCollectionNames().sort(), ['many', 'people', 'sales']);
  same(db.getCollectionInfos({ name: 'many' })[0].type, 'collection');
  const stats = db.many.stats();
  same([stats.ns, stats.count, stats.nindexes], ['e2e_shell_life.many', 1000, 1]);
  same(Number(db.stats().collections), 3);
  same(db.many.validate().valid, true);
  same(db.many.renameCollection('lots').ok, 1);
  same(db.lots.countDocuments(), 1000);
  holds(db.adminCommand({ listDatabases: 1 }).databases.some((d) => d.name === 'e2e_shell_life'), 'listDatabases');
});

check('bulk writes', () => {
  const result = db.bulk.bulkWrite([
    { insertOne: { document: { _id: 1 } } },
    { updateOne: { filter: { _id: 1 }, update: { $set: { a: 1 } } } },
    { replaceOne: { filter: { _id: 2 }, replacement: { a: 2 }, upsert: true } },
    { deleteOne: { filter: { _id: 1 } } },
  ]);
  same([result.insertedCount, result.modifiedCount, result.upsertedCount, result.deletedCount], [1, 1, 1, 1]);
});

check('what expires can be asked for', () => {
  db.asked.createIndex({ at: 1 }, { expireAfterSeconds: 3600 });
  db.asked.insertOne({ _id: 'later', at: new Date() });
  db.asked.insertOne({ _id: 'never', at: 'tomorrow' });
  same(db.adminCommand({ ebbTTL: 1 }).ok, 1);
  same(db.runCommand({ ebbTTL: 'asked' }).ok, 1);
  same(db.runCommand({ ebbTTL: 'asked', explain: 'never' }).ok, 1);
});

check('drop', () => {
  same(db.bulk.drop(), true);
  same(db.dropDatabase().ok, 1);
  same(db.getCollectionNames(), []);
});

done();
