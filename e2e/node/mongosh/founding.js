// The lines of the documents that Ebb was founded on, typed as they stand there, and what those documents promise.
load('mongosh/tap.js');
db = db.getSiblingDB('e2e_founding');
db.dropDatabase();

// A TTL that was made or shortened spares what was due by then for a minute, so that a mistake can be taken back. The promises
// below are about what comes after that minute, and nobody waits for it here.
db.adminCommand({ setParameter: 1, ttlChangeGraceSecs: 0 });

const second = 1000;

// Reclaim follows expiry at once; what is waited for beyond it is a slow machine.
const reclaim = 10 * second;

const where = (query) => db.coll.find(query).toArray().map((d) => d.ttl);
const typesOf = () => db.coll.aggregate([{ $project: { _id: 0, type: { $type: '$ttl' } } }]).toArray().map((d) => d.type).sort();

check('createIndex on _ts answers as the document shows', () => {
  same(db.coll.createIndex({"_ts":1}, {expireAfterSeconds: 10}), '_ts_1');
  const listed = db.coll.getIndexes().map(({ key, name, expireAfterSeconds }) => ({ key, name, expireAfterSeconds }));
  same(listed[1], { key: { _ts: 1 }, name: '_ts_1', expireAfterSeconds: 10 });

  const reply = db.runCommand({ createIndexes: 'reply', indexes: [{ key: { _ts: 1 }, name: '_ts_1', expireAfterSeconds: 10 }] });
  same(reply._t, 'CreateIndexesResponse');
  same(reply.ok, 1);
  same(reply.createdCollectionAutomatically, true);
  same(reply.numIndexesBefore, 1);
  same(reply.numIndexesAfter, 2); // the document's 4 counts that service's own default indexes
});

const before = Date.now();
check('all five documents are inserted', () => {
  db.coll.insert({id:1, location: "Paris", ttl: 20.0})
  db.coll.insert({id:1, location: "Paris", ttl: NumberInt(20)})
  db.coll.insert({id:1, location: "Paris", ttl: NumberLong(20)})
  db.coll.insert({id:1, location: "Paris", ttl: 20.5}) //TTL value contains non-zero decimal part.
  db.coll.insert({id:1, location: "Paris", ttl: NumberLong(2147483649)}) //TTL value is greater than Int32.MaxValue (2,147,483,648).
  same(db.coll.countDocuments({}), 5);
});
const after = Date.now();

// What the shell writes for 20.0 is a matter of the shell; doubles, so that one is really among them.
check('a double 20.0 is as valid as an int', () => {
  db.coll.insert({id:1, location: "Lyon", ttl: Double(20.0)});
  same(db.coll.countDocuments({ ttl: { $type: 'double' }, location: 'Lyon' }), 1);
  same(typesOf().filter((t) => t === 'long').length, 2);
});

check('_ts is not accessible', () => {
  same(Object.keys(db.coll.findOne()), ['_id', 'id', 'location', 'ttl']);
  same(db.coll.countDocuments({ _ts: { $exists: true } }), 0);
  same(db.coll.find({}, { _ts: 1, _id: 0 }).toArray()[0], {});
});

check('another value on _ts changes the TTL in place, collMod too', () => {
  db.slow.createIndex({"_ts":1}, {expireAfterSeconds: 1000});
  db.slow.createIndex({"_ts":1}, {expireAfterSeconds: 2000});
  same(db.slow.getIndexes()[1].expireAfterSeconds, 2000);
  const reply = db.runCommand({ collMod: 'slow', index: { keyPattern: { _ts: 1 }, expireAfterSeconds: 3000 } });
  same(reply.expireAfterSeconds_old, NumberLong(2000));
  same(reply.expireAfterSeconds_new, NumberLong(3000));
});

// --- Expire documents after a number of seconds, and at a clock time.

check('ensureIndex with 3600 seconds', () => {
  db.log_events.ensureIndex( { "createdAt": 1 }, { expireAfterSeconds: 3600 } )
  same(db.log_events.getIndexes()[1].expireAfterSeconds, 3600);
  db.log_events.insert( {
     "createdAt": new Date(),
     "logEvent": 2,
     "logMessage": "Success!"
  } )
  db.log_events.insert({ createdAt: new Date(Date.now() - 3601 * second), logEvent: 3, logMessage: 'an hour and a second ago' });
  eventually(reclaim, 'the old event goes', () => db.log_events.countDocuments({ logEvent: 3 }) === 0);
  same(db.log_events.countDocuments({ logEvent: 2 }), 1);
});

check('ensureIndex with 0 seconds: a clock time', () => {
  db.log_events.ensureIndex( { "expireAt": 1 }, { expireAfterSeconds: 0 } )
  db.log_events.insert( {
     "expireAt": new Date('July 22, 2013 14:00:00'),
     "logEvent": 2,
     "logMessage": "Success!"
  } )
  const soon = new Date(Date.now() + 2 * second);
  db.log_events.insert({ expireAt: soon, logEvent: 4 });
  db.log_events.insert({ expireAt: [new Date('2999-01-01'), soon], logEvent: 4, note: 'the earliest date decides' });
  db.log_events.insert({ expireAt: 'July 22, 2013 14:00:00', logEvent: 5, note: 'not a date' });
  db.log_events.insert({ expireAt: null, logEvent: 5 });
  eventually(reclaim, 'the event of 2013 goes', () => db.log_events.countDocuments({ expireAt: { $lt: new Date('2014-01-01') } }) === 0);
  const seen = db.log_events.countDocuments({ logEvent: 4 });
  if (Date.now() < soon.getTime()) same(seen, 2, 'before its time');
  eventually(reclaim, 'the events go at their time', () => db.log_events.countDocuments({ logEvent: 4 }) === 0);
  holds(Date.now() >= soon.getTime(), 'gone before its time');
  same(db.log_events.countDocuments({ logEvent: 5 }), 2, 'not a date');
  same(db.log_events.countDocuments({ logEvent: 2 }), 1, 'the event of the first recipe');
});

check('ensureIndex cannot change the seconds, collMod can', () => {
  refused(db, { createIndexes: 'log_events', indexes: [{ key: { createdAt: 1 }, name: 'createdAt_1', expireAfterSeconds: 1 }] }, 85, 'IndexOptionsConflict');
  let code = 0;
  try {
    db.log_events.ensureIndex( { "createdAt": 1 }, { expireAfterSeconds: 1 } )
  } catch (e) {
    code = e.code;
  }
  same(code, 85);
  same(db.log_events.getIndexes()[1].expireAfterSeconds, 3600);

  const reply = db.runCommand({ collMod: 'log_events', index: { keyPattern: { createdAt: 1 }, expireAfterSeconds: 1 } });
  same(reply, { ...reply, expireAfterSeconds_old: NumberLong(3600), expireAfterSeconds_new: NumberLong(1), ok: 1 });
  eventually(reclaim, 'what is older than a second goes', () => db.log_events.countDocuments({ logEvent: 2 }) === 0);
});

check('what may not have a TTL', () => {
  const index = (key, seconds) => ({ createIndexes: 'rules', indexes: [{ key, name: 'x', expireAfterSeconds: seconds }] });
  refused(db, index({ _id: 1 }, 10), 197, 'InvalidIndexSpecificationOption');
  refused(db, index({ a: 1, b: 1 }, 10), 67, 'CannotCreateIndex');
  refused(db, index({ a: 1 }, -1), 67, 'CannotCreateIndex');
  refused(db, index({ a: 1 }, NaN), 67, 'CannotCreateIndex');
  refused(db, index({ a: 1 }, '3600'), 67, 'CannotCreateIndex');
  db.createCollection('capped', { capped: true, size: 4096 });
  refused(db, { ...index({ a: 1 }, 10), createIndexes: 'capped' }, 67, 'CannotCreateIndex');
});

check('usePowerOf2Sizes is on for a collection with a TTL', () => {
  db.runCommand({ collMod: 'log_events', usePowerOf2Sizes: false });
  same(db.log_events.stats().userFlags, 1);
});

// --- The ten and the twenty seconds.

check('all live before ten seconds', () => {
  sleepUntil(before + 8 * second);
  const seen = db.coll.countDocuments({ location: 'Paris' });
  holds(Date.now() < before + 10 * second, 'this machine is too slow to say');
  same(seen, 5);
});

check('after ten seconds the two invalid ones are gone, for every reader', () => {
  sleepUntil(after + 10 * second + 50);
  const count = db.coll.countDocuments({ location: 'Paris' });
  const grouped = db.coll.aggregate([{ $match: { location: 'Paris' } }, { $group: { _id: '$location', n: { $sum: 1 } } }]).toArray();
  const distinct = db.coll.distinct('ttl', { location: 'Paris' });
  const invalid = where({ ttl: { $gt: 20 } });
  holds(Date.now() < before + 20 * second, 'this machine is too slow to say');
  same(count, 3);
  same(grouped.length, 1);
  same(Number(grouped[0].n), 3);
  same(distinct.length, 1);
  same(invalid, []);
});

check('after twenty seconds the valid ones are gone too', () => {
  sleepUntil(before + 18 * second);
  const seen = db.coll.countDocuments({ location: 'Paris' });
  if (Date.now() < before + 20 * second) same(seen, 3, 'before twenty seconds');
  sleepUntil(after + 20 * second + 50);
  same(db.coll.countDocuments({ location: 'Paris' }), 0);
  eventually(reclaim, 'their records are gone from the store', () => db.coll.stats().count === 0);
});

done();
