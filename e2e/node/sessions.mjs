// A web application that keeps its sessions in the database: express-session over connect-mongo, asked over HTTP.
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { MongoStore } from 'connect-mongo';
import session from 'express-session';
import { MongoClient } from 'mongodb';
import { check, done, eventually, reclaim, second, uri } from './tap.mjs';

const client = new MongoClient(uri);
await client.connect();
const db = client.db('e2e_sessions');
await db.dropDatabase();

const store = MongoStore.create({ client, dbName: 'e2e_sessions', collectionName: 'sessions', touchAfter: 0, stringify: false });
const middleware = session({ secret: 'tide', resave: false, saveUninitialized: false, store, cookie: { maxAge: 3 * second } });
const server = createServer((request, response) => {
  middleware(request, response, (error) => {
    if (error) {
      response.statusCode = 500;
      return response.end(String(error));
    }
    if (request.url === '/logout') return request.session.destroy(() => response.end('bye'));
    request.session.views = (request.session.views ?? 0) + 1;
    response.end(String(request.session.views));
  });
});
await new Promise((ready) => server.listen(0, '127.0.0.1', ready));
const home = `http://127.0.0.1:${server.address().port}`;

let cookie = '';
async function visit(path = '/') {
  const response = await fetch(home + path, { headers: { cookie, connection: 'close' } });
  const given = response.headers.getSetCookie()[0];
  if (given) cookie = given.split(';')[0];
  const body = await response.text();
  assert.equal(response.status, 200, body);
  return body;
}
const stored = () => db.collection('sessions').countDocuments();

await check('a session lasts from request to request', async () => {
  assert.equal(await visit(), '1');
  assert.equal(await visit(), '2');
  assert.equal(await visit(), '3');
  assert.equal(await stored(), 1);
});

await check('the store has its TTL index', async () => {
  const index = (await db.collection('sessions').indexes()).find((i) => i.key.expires);
  assert.equal(index.expireAfterSeconds, 0);
});

await check('logging out removes it', async () => {
  assert.equal(await visit('/logout'), 'bye');
  assert.equal(await stored(), 0);
});

await check('a forgotten session is let go when its cookie ends', async () => {
  const before = Date.now();
  assert.equal(await visit(), '1');
  assert.equal(await visit(), '2');
  await eventually(3 * second + reclaim, 'the session goes', async () => (await stored()) === 0);
  assert.ok(Date.now() >= before + 3 * second - 1, 'gone before its time');
  assert.equal(await visit(), '1');
});

server.close();
await store.close();
await client.close().catch(() => {}); // the store may have closed it already
done();
