// The Node.js driver logs in, and is let do what its user may do.
import assert from 'node:assert/strict';
import { MongoClient } from 'mongodb';
import { check, done, refused, uri } from './tap.mjs';

const { EBB_IN: ins, EBB_OUT: outs, EBB_AS: as, EBB_PEOPLE: people, EBB_TOKEN: accessToken } = process.env;
const name = 'node';

async function connected(at, body, options = {}) {
  const client = new MongoClient(at, options);
  try {
    return await body(client);
  } finally {
    await client.close();
  }
}

for (const [i, at] of ins.split('\n').entries()) {
  await check(`logs in ${i}`, () => connected(at, async (client) => {
    await client.db('e2e_login').collection(name).insertOne({});
    assert.ok(await client.db('e2e_login').collection(name).findOne());
  }));
}
for (const [i, at] of outs.split('\n').entries()) {
  await check(`does not log in ${i}`, () => connected(at, (client) => refused(client.db('admin').command({ connectionStatus: 1 }), 18, 'AuthenticationFailed')));
}
await check('roles change while a user is connected', () => connected(uri, (root) => connected(as.replaceAll('NAME', name), async (user) => {
  const run = (command) => root.db(name).command(command);
  await run({ createUser: name, pwd: name, roles: ['readWrite'] });
  const own = user.db(name).collection('c');
  await own.insertOne({ a: 1 });
  await refused(user.db('e2e_login').collection('c').findOne(), 13, 'Unauthorized');
  await refused(user.db(name).command({ createUser: 'other', pwd: 'x', roles: [] }), 13, 'Unauthorized');
  await run({ revokeRolesFromUser: name, roles: ['readWrite'] });
  await run({ grantRolesToUser: name, roles: ['read'] });
  assert.equal((await own.findOne()).a, 1);
  await refused(own.insertOne({}), 13, 'Unauthorized');
  await run({ dropUser: name });
  await refused(own.findOne(), 13, 'Unauthorized');
})));
if (people) {
  let told;
  const OIDC_HUMAN_CALLBACK = async ({ idpInfo }) => {
    told = idpInfo;
    return { accessToken };
  };
  await check('is told where to get a token', () => connected(people, async (client) => {
    await client.db('e2e_login').collection(name).insertOne({});
    assert.equal(told.clientId, 'e2e');
  }, { authMechanismProperties: { OIDC_HUMAN_CALLBACK } }));
}
done();
