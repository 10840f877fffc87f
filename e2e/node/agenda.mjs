// A job queue that is told of jobs by a change stream: agenda.
import assert from 'node:assert/strict';
import { MongoBackend, MongoChangeStreamNotificationChannel } from '@agendajs/mongo-backend';
import { Agenda } from 'agenda';
import { MongoClient } from 'mongodb';
import { check, done, eventually, opened, reclaim, second, uri } from './tap.mjs';

const client = await MongoClient.connect(uri);
const db = client.db('e2e_agenda');
await db.dropDatabase();

// never is for those that shall hear of jobs by the stream alone. Who sets an alarm for a later job needs to look now and then: a timer
// of Node.js may go off a millisecond early, and agenda then waits for its next look.
const never = '10 minutes';
const often = '2 seconds';
const backend = () => new MongoBackend({ mongo: db });
const errors = [];

// worker is one that takes jobs of some kinds; mailed and at tell what it did, and when.
async function worker(kinds, processEvery) {
  const channel = new MongoChangeStreamNotificationChannel({ db });
  const agenda = new Agenda({ backend: backend(), notificationChannel: channel, processEvery, defaultConcurrency: 50, maxConcurrency: 50 });
  const [mailed, at] = [[], []];
  for (const told of [agenda, channel]) told.on('error', (e) => errors.push(e));
  for (const kind of kinds) {
    agenda.define(kind, async (job) => {
      if (kind === 'print') throw new Error('the printer burns');
      mailed.push(job.attrs.data.to);
      at.push(Date.now());
    });
  }
  await agenda.start();
  await opened(channel.changeStream);
  return { agenda, mailed, at };
}

const one = await worker(['mail', 'print'], never);
const two = await worker(['mail'], never);
const later = await worker(['remind'], often);
const mailed = () => [...one.mailed, ...two.mailed];
// office gives work to others and does none.
const office = new Agenda({ backend: backend(), processEvery: never });
for (const kind of ['mail', 'print', 'remind']) office.define(kind, async () => errors.push(`the office did: ${kind}`));
const finished = async (job) => {
  const [found] = (await office.queryJobs({ id: String(job.attrs._id) })).jobs;
  return found?.lastFinishedAt && found;
};

await check('a job that another program gives is done at once', async () => {
  const job = await office.now('mail', { to: 'Ada' });
  await eventually(reclaim, 'the mail goes', async () => mailed().length > 0);
  assert.deepEqual(mailed(), ['Ada']);
  await eventually(reclaim, 'it is noted', async () => finished(job));
});

await check('a job that fails says why', async () => {
  const job = await office.now('print', {});
  let found;
  await eventually(reclaim, 'it fails', async () => (found = await finished(job))?.failedAt);
  assert.deepEqual([found.failReason, found.failCount], ['the printer burns', 1]);
});

await check('a job for later is done then, unless it is given up', async () => {
  const when = new Date(Date.now() + second);
  const job = await office.schedule(new Date(Date.now() + 3600 * second), 'remind', { to: 'nobody' });
  assert.equal(await office.cancel({ id: String(job.attrs._id) }), 1);
  await office.schedule(when, 'remind', { to: 'Bob' });
  await eventually(second + reclaim, 'the reminder goes', async () => later.mailed.length > 0);
  assert.deepEqual(later.mailed, ['Bob']);
  assert.ok(later.at[0] >= +when, 'too early');
});

await check('a job that comes again', async () => {
  const before = later.mailed.length;
  await office.every('1 second', 'remind', { to: 'the mother' });
  await eventually(2 * reclaim, 'it comes again', async () => later.mailed.length >= before + 3);
  assert.deepEqual(new Set(later.mailed.slice(before)), new Set(['the mother']));
});

await check('two workers do each job once', async () => {
  const before = mailed().length;
  const guests = Array.from({ length: 60 }, (_, i) => `guest ${i}`);
  await Promise.all(guests.map((to) => office.now('mail', { to })));
  await eventually(2 * reclaim, 'all mail goes', async () => mailed().length >= before + guests.length);
  assert.deepEqual(mailed().filter((to) => to.startsWith('guest')).sort(), [...guests].sort());
});

await check('nothing went wrong beside that', () => assert.deepEqual(errors, []));

for (const { agenda } of [one, two, later]) await agenda.stop();
await client.close();
done();
process.exit(); // agenda keeps alarms of jobs that are no more
