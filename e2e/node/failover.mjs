// The Node.js driver on a replica set of three whose primary is killed, and stopped, again and again: it sends a write again that got no answer, and no server answers
// with an error. The driver (7.8) sends a write twice at most: what was under way on a connection whose pool it has closed already, since it saw the end of the server
// elsewhere first, and what it writes to a socket that has ended, it gives up, and on a busy machine each of its connections is one such. So the application does here
// what it would have to do anywhere, and tells how often.
import assert from 'node:assert/strict';
import { MongoClient, MongoServerError } from 'mongodb';
import { setTimeout as pause } from 'node:timers/promises';
import { check, done, uri } from './tap.mjs';

const client = await MongoClient.connect(uri);
const documents = client.db('e2e_node_failover').collection('c');
const failovers = Number(process.env.EBB_FAILOVERS);
const beside = 2;

async function ask(path) {
  const answer = await fetch(`${process.env.EBB_FAILOVER_URL}/${path}`);
  assert.equal(answer.status, 200, await answer.text());
}

let givenUp = 0;

// attempts bounds how often a write is begun: more than there are connections that can have ended.
const attempts = 10;

async function insert(_id) {
  for (let attempt = 1; ; attempt++) {
    try {
      await documents.insertOne({ _id });
      return;
    } catch (e) {
      if (attempt > 1 && e.code === 11000) return; // it was there already
      if (e instanceof MongoServerError || attempt === attempts) throw e; // the first is what a server has said
      givenUp++;
    }
  }
}

await check('no write fails', async () => {
  await insert('first');
  let over = false;
  const write = async (name) => {
    let n = 0;
    for (; !over; n++) {
      await insert(`${name} ${n}`);
      await pause(5);
    }
    return n;
  };
  const writers = Array.from({ length: beside }, (_, i) => write(`writer ${i}`));
  const failover = async () => {
    for (let n = 0; n < failovers; n++) {
      for (const how of ['kill', 'stop']) {
        await ask(how);
        const began = performance.now();
        await insert(`${how} ${n}`);
        await ask(`restore?how=${how}&millis=${Math.round(performance.now() - began)}`);
      }
    }
  };
  const [, ...written] = await Promise.all([failover().finally(() => (over = true)), ...writers]);
  const all = written.reduce((sum, n) => sum + n, 1 + 2 * failovers);
  assert.equal(await documents.countDocuments(), all);
  await ask(`told?given=${givenUp}&of=${all}`);
});

await client.close();
done();
