// Personal data that has to be gone by a date, as the law or the person says: `mongosh "$MONGODB_URI" --file retention.js`.
//
// Three rules on one collection. The earliest decides:
//   - every customer is kept for three years after the last change of the document (_ts);
//   - who asks to be forgotten gets a date, eraseAt;
//   - a hold of the courts (ttl: -1) keeps one out of the first rule, until it is lifted.
// Before a rule is put in force it is tried; afterwards the database tells of each document when it goes, and why.

const assert = (ok, what) => {
  if (!ok) throw new Error(`not so: ${what}`);
};
const customers = db.getSiblingDB("example_retention").customers;
const run = (command) => {
  const reply = customers.getDB().runCommand(command);
  assert(reply.ok === 1, JSON.stringify(reply));
  return reply;
};
const year = 365 * 24 * 3600;
customers.drop();
customers.insertMany([
  { _id: "ada", email: "ada@example.org" },
  { _id: "bob", email: "bob@example.org" },
  { _id: "eve", email: "eve@example.org", ttl: -1, hold: "case 17" },
]);
customers.createIndex({ _ts: 1 }, { expireAfterSeconds: 3 * year });
customers.createIndex({ eraseAt: 1 }, { expireAfterSeconds: 0 });

// What goes when? Two within three years, and one never.
const explained = (id) => run({ ebbTTL: "customers", explain: id });
const days = (d) => Math.round((d - new Date()) / 86400000);
assert(days(explained("ada").deadline) === 3 * 365, "ada goes in three years");
assert(explained("eve").expires === false, "eve stays");
print(`ada goes in ${days(explained("ada").deadline)} days; eve stays: ${explained("eve").rules[0].reason}`);

// Bob asks to be forgotten, now. That is in time, and in the log of changes nobody finds his address.
customers.updateOne({ _id: "bob" }, { $set: { eraseAt: new Date() }, $unset: { email: "" } });
for (let i = 0; customers.countDocuments({ _id: "bob" }) > 0; i++) {
  assert(i < 100, "bob is gone");
  sleep(100);
}
print("bob is gone");

// The hold ends: from now on the rule of all holds for eve too.
customers.updateOne({ _id: "eve" }, { $unset: { ttl: "", hold: "" } });
assert(explained("eve").expires === true, "eve goes");
print("eve goes as all do, now that nobody holds her");
