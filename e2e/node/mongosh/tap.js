// Checks for scripts that run inside the shell. The shell waits for its own calls by itself, so nothing here is async.
const tap = { count: 0, failed: 0 };

function check(name, body) {
  tap.count++;
  try {
    body();
    print(`ok ${name}`);
  } catch (e) {
    tap.failed++;
    print(`not ok ${name}: ${e.stack || e}`);
  }
}

function done() {
  print(`1..${tap.count}`);
  if (tap.failed > 0) quit(1);
}

function same(got, want, what) {
  const [g, w] = [EJSON.stringify(got, { relaxed: false }), EJSON.stringify(want, { relaxed: false })];
  if (g !== w) throw new Error(`${what || 'value'}: got ${g}, want ${w}`);
}

function holds(condition, what) {
  if (!condition) throw new Error(what);
}

// refused runs the command and wants it refused with this code and name.
function refused(database, command, code, codeName) {
  let reply;
  try {
    reply = database.runCommand(command);
  } catch (e) {
    reply = { ok: 0, code: e.code, codeName: e.codeName, errmsg: e.message };
  }
  if (reply.ok !== 0 || reply.code !== code || reply.codeName !== codeName) {
    throw new Error(`want ${code} ${codeName}, got ${EJSON.stringify(reply)}`);
  }
  return reply;
}

// sleepUntil waits for a moment given in milliseconds since the epoch.
function sleepUntil(moment) {
  const left = moment - Date.now();
  if (left > 0) sleep(left);
}

// eventually asks again and again until the answer is true.
function eventually(limitMillis, what, condition) {
  const end = Date.now() + limitMillis;
  for (;;) {
    if (condition()) return;
    if (Date.now() > end) throw new Error(`not within ${limitMillis} ms: ${what}`);
    sleep(50);
  }
}
