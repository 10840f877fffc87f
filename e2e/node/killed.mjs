// The Node.js driver whose only member is killed under it: change streams, sessions and transactions go on where they were.
import assert from 'node:assert/strict';
import { MongoClient } from 'mongodb';
import { check, done, opened, reclaim, uri, within } from './tap.mjs';

const client = await MongoClient.connect(uri);
const db = client.db('e2e_node_killed');

// kill kills the server, and returns when it is there again.
async function kill() {
  const answer = await fetch(process.env.EBB_KILL_URL);
  assert.equal(answer.status, 200, await answer.text());
}

const ids = (n) => Array.from({ length: n }, (_, i) => i);

// take reads a stream until the document "end".
async function take(stream, tokens = {}) {
  const seen = [];
  while (seen.at(-1) !== 'end') {
    const event = await within(3 * reclaim, `an event behind ${seen.at(-1)}`, stream.next());
    seen.push(event.documentKey._id);
    tokens[event.documentKey._id] = event._id;
  }
  await stream.close();
  return seen;
}

await check('streams go on, each event once', async () => {
  const things = await db.createCollection('things');
  const stream = things.watch();
  const tokens = {};
  const listening = take(stream, tokens);
  await opened(stream);
  const half = client.startSession();
  half.startTransaction();
  await things.insertOne({ _id: 'half' }, { session: half }); // never committed
  for (const _id of ids(10)) await things.insertOne({ _id });
  await kill();
  for (const _id of ids(10)) await things.insertOne({ _id: _id + 10 });
  await things.insertOne({ _id: 'end' });
  const all = [...ids(20), 'end'];
  assert.deepEqual(await listening, all);
  for (const after of [3, 9, 12]) {
    assert.deepEqual(await take(things.watch([], { resumeAfter: tokens[after] })), all.slice(after + 1));
    assert.deepEqual(await take(things.watch([], { startAfter: tokens[after] })), all.slice(after + 1));
  }
  await half.endSession();
});

await check('a causally consistent session reads what it has written', async () => {
  const causal = db.collection('causal', { readConcern: 'majority' });
  await client.withSession({ causalConsistency: true }, async (session) => {
    await causal.insertOne({ _id: 1 }, { session });
    const { operationTime } = session;
    await kill();
    assert.deepEqual(await causal.findOne({ _id: 1 }, { session }), { _id: 1 });
    await causal.insertOne({ _id: 2 }, { session });
    assert.ok(session.operationTime.greaterThan(operationTime));
  });
});

await check('withTransaction begins again', async () => {
  const [one, other] = [db.collection('one'), db.collection('other')];
  for (const coll of [one, other]) await coll.insertOne({ _id: 1, n: 0 });
  let tries = 0;
  await client.withSession((session) => session.withTransaction(async () => {
    tries++;
    await one.updateOne({ _id: 1 }, { $inc: { n: 1 } }, { session });
    if (tries === 1) await kill();
    await other.updateOne({ _id: 1 }, { $inc: { n: 1 } }, { session });
  }));
  assert.deepEqual([tries, (await one.findOne()).n, (await other.findOne()).n], [2, 1, 1]);
});

await client.close();
done();
