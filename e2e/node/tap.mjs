// Checks for the Node.js clients, in the same form as the shell's: "ok NAME" or "not ok NAME", and "1..N" at the end.
import assert from 'node:assert/strict';

let count = 0;
let failed = 0;

export const uri = process.env.EBB_URI ?? 'mongodb://127.0.0.1:27017/?directConnection=true';
export const second = 1000;

// Reclaim follows expiry at once; what is waited for beyond it is a slow machine.
export const reclaim = 10 * second;

export async function check(name, body) {
  count++;
  try {
    await body();
    console.log(`ok ${name}`);
  } catch (e) {
    failed++;
    console.log(`not ok ${name}: ${e.stack ?? e}`);
  }
}

export function done() {
  console.log(`1..${count}`);
  if (failed > 0) process.exitCode = 1;
}

export const sleepUntil = (moment) => new Promise((wake) => setTimeout(wake, Math.max(0, moment - Date.now())));

export async function eventually(limitMillis, what, condition) {
  const end = Date.now() + limitMillis;
  while (!(await condition())) {
    if (Date.now() > end) assert.fail(`not within ${limitMillis} ms: ${what}`);
    await sleepUntil(Date.now() + 50);
  }
}

// within wants the promise to be kept in time: what waits for an event fails with a name, and not with the whole program.
export function within(limitMillis, what, promise) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new assert.AssertionError({ message: `not within ${limitMillis} ms: ${what}` })), limitMillis);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

// opened returns when the server has the change stream: what is written from then on is told.
export const opened = (stream) => eventually(reclaim, 'the stream is open', async () => stream.cursor.id != null);

// refused wants the promise to fail with this code and name.
export async function refused(promise, code, codeName) {
  try {
    await promise;
  } catch (e) {
    assert.equal(e.code, code, e.stack);
    if (codeName) assert.equal(e.codeName, codeName);
    return e;
  }
  assert.fail(`accepted, but ${code} was expected`);
}
