// Change streams as applications use them, by the driver, on a replica set of one.
import assert from 'node:assert/strict';
import { MongoClient } from 'mongodb';
import { check, done, opened, second, uri } from './tap.mjs';

const client = await MongoClient.connect(uri);
const db = client.db('e2e_streams');
await db.dropDatabase();

// collect takes the next n events of a stream and leaves it open.
async function collect(stream, n) {
  const events = [];
  while (events.length < n) events.push(await stream.next());
  return events;
}

const brief = ({ operationType, documentKey }) => [operationType, documentKey?._id];

await check('a stream tells of writes with the documents before and behind them', async () => {
  await db.createCollection('images', { changeStreamPreAndPostImages: { enabled: true } });
  const images = db.collection('images');
  const stream = images.watch([{ $match: { operationType: { $ne: 'insert' } } }], { fullDocument: 'required', fullDocumentBeforeChange: 'required' });
  const first = stream.next();
  await opened(stream);
  await images.insertMany([{ _id: 1, n: 1 }, { _id: 2 }]);
  await images.updateOne({ _id: 1 }, { $inc: { n: 1 } });
  await images.deleteOne({ _id: 2 });
  const update = await first;
  assert.deepEqual([update.fullDocumentBeforeChange, update.fullDocument], [{ _id: 1, n: 1 }, { _id: 1, n: 2 }]);
  assert.deepEqual((await stream.next()).fullDocumentBeforeChange, { _id: 2 });
  await stream.close();
});

await check('a stream goes on where another has stopped, over transactions too', async () => {
  const books = db.collection('books');
  const stream = books.watch();
  const first = stream.next();
  await opened(stream);
  await books.insertMany([{ _id: 1 }, { _id: 2 }]);
  await client.withSession((session) => session.withTransaction(async () => {
    await books.insertOne({ _id: 3 }, { session });
    await books.updateOne({ _id: 1 }, { $set: { lent: true } }, { session });
    await db.collection('loans').insertOne({ book: 1 }, { session });
  }));
  const events = [await first, ...(await collect(stream, 3))];
  assert.deepEqual(events.map(brief), [['insert', 1], ['insert', 2], ['insert', 3], ['update', 1]]);
  await stream.close();
  for (const [i, event] of events.slice(0, -1).entries()) {
    const again = books.watch([], { resumeAfter: event._id });
    assert.deepEqual((await collect(again, 3 - i)).map(brief), events.slice(i + 1).map(brief));
    await again.close();
  }
});

await check('a stream ends with its collection', async () => {
  const short = db.collection('short');
  const stream = short.watch();
  const first = stream.next();
  await opened(stream);
  await short.insertOne({ _id: 1 });
  await short.drop();
  const events = [await first, ...(await collect(stream, 2))];
  assert.deepEqual(events.map((e) => e.operationType), ['insert', 'drop', 'invalidate']);
  await stream.close();
});

await check('what expires can be kept elsewhere', async () => {
  await db.createCollection('visits', { changeStreamPreAndPostImages: { enabled: true } });
  const visits = db.collection('visits');
  await visits.createIndex({ until: 1 }, { expireAfterSeconds: 0, name: 'until' });
  const stream = visits.watch([{ $match: { expiration: { $exists: true } } }], { fullDocumentBeforeChange: 'required' });
  const first = stream.next();
  await opened(stream);
  const until = new Date(Date.now() + second);
  await visits.insertMany([{ _id: 1, until }, { _id: 2 }]);
  await visits.deleteOne({ _id: 2 });
  const event = await first;
  assert.deepEqual([event.operationType, event.fullDocumentBeforeChange], ['delete', { _id: 1, until }]);
  assert.deepEqual([event.expiration.index, event.expiration.deadline], ['until', until]);
  await stream.close();
});

await client.close();
done();
