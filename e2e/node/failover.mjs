// The Node.js driver on a replica set of three whose primary is killed, and stopped, again and again: it sends a write again that got no answer, so that the
// application sees no error.
import assert from 'node:assert/strict';
import { MongoClient } from 'mongodb';
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

await check('no write fails', async () => {
  await documents.insertOne({ _id: 'first' });
  let over = false;
  const write = async (name) => {
    let n = 0;
    for (; !over; n++) {
      await documents.insertOne({ _id: `${name} ${n}` });
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
        await documents.insertOne({ _id: `${how} ${n}` });
        await ask(`restore?how=${how}&millis=${Math.round(performance.now() - began)}`);
      }
    }
    over = true;
  };
  const [, ...written] = await Promise.all([failover(), ...writers]);
  const all = written.reduce((sum, n) => sum + n, 1 + 2 * failovers);
  assert.equal(await documents.countDocuments(), all);
});

await client.close();
done();
