// Logs in, waits until the session has run out, and logs in and out: `node try.mjs`.

import assert from "node:assert/strict";
import { once } from "node:events";
import { MongoClient } from "mongodb";
import { app } from "./server.mjs";

const { app: web, store } = app({ seconds: 2 });
const server = web.listen(0, "127.0.0.1");
await once(server, "listening");
const base = `http://127.0.0.1:${server.address().port}`;
const client = new MongoClient(process.env.MONGODB_URI ?? "mongodb://127.0.0.1:27017");
const stored = () => client.db("example_sessions").collection("sessions").countDocuments();
const wait = (ms) => new Promise((done) => setTimeout(done, ms));

// A response is whole when the session is stored: express-session sends the headers before.
const send = async (path, options) => {
  const response = await fetch(base + path, options);
  await response.text();
  return response;
};

const login = await send("/login/ada", { method: "POST" });
const cookie = login.headers.get("set-cookie").split(";")[0];
const ask = (path) => send(path, { headers: { cookie } });
assert.equal((await ask("/")).status, 200);
assert.equal(await stored(), 1);
console.log("logged in");

await wait(1200);
assert.equal((await ask("/")).status, 200); // which begins the two seconds anew
await wait(1200);
assert.equal((await ask("/")).status, 200);
console.log("used, and kept");

await wait(3000);
assert.equal((await ask("/")).status, 401);
for (let tries = 0; (await stored()) > 0; tries++) { // on a machine that is busy with other things this may take a second more
  assert.ok(tries < 100, "run out, and not deleted");
  await wait(100);
}
console.log("run out, and deleted");

const again = await send("/login/ada", { method: "POST" });
const second = again.headers.get("set-cookie").split(";")[0];
await send("/logout", { method: "POST", headers: { cookie: second } });
assert.equal(await stored(), 0);
console.log("logged out");

server.close();
await store.close();
await client.close();
