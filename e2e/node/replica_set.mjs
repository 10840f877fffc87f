// The Node.js driver with a replica set of one, by the set's name and directly: transactions, their conflicts, and sessions.
import assert from 'node:assert/strict';
import { MongoClient } from 'mongodb';
import { check, done } from './tap.mjs';

for (const [how, uri] of [['by name', process.env.EBB_URI], ['directly', process.env.EBB_DIRECT_URI]]) {
  const client = new MongoClient(uri);
  await client.connect();
  const db = client.db(`e2e_node_${how === 'directly' ? 'direct' : 'set'}`);
  const [accounts, savings] = [db.collection('accounts'), db.collection('savings')];
  await accounts.insertOne({ _id: 1, balance: 100 });
  await savings.insertOne({ _id: 1, balance: 0 });
  const balances = async () => [(await accounts.findOne({ _id: 1 })).balance, (await savings.findOne({ _id: 1 })).balance];
  const transfer = (session, amount) => session.withTransaction(async () => {
    await accounts.updateOne({ _id: 1 }, { $inc: { balance: -amount } }, { session });
    await savings.updateOne({ _id: 1 }, { $inc: { balance: amount } }, { session });
    if ((await accounts.findOne({ _id: 1 }, { session })).balance < 0) throw new Error('not enough');
  });

  await check(`${how}: the primary of the set`, async () => {
    const hello = await db.admin().command({ hello: 1 });
    assert.equal(hello.setName, 'e2e');
    assert.equal(hello.isWritablePrimary, true);
    assert.deepEqual(hello.hosts, [hello.me]);
    assert.equal(hello.primary, hello.me);
  });

  await check(`${how}: withTransaction over two collections`, async () => {
    await client.withSession(async (session) => {
      await transfer(session, 30);
      assert.deepEqual(await balances(), [70, 30]);
      await assert.rejects(transfer(session, 500), /not enough/);
      assert.deepEqual(await balances(), [70, 30]);
    });
  });

  await check(`${how}: a conflict has its label`, async () => {
    const [one, other] = [client.startSession(), client.startSession()];
    one.startTransaction();
    other.startTransaction();
    await accounts.updateOne({ _id: 1 }, { $inc: { balance: -1 } }, { session: one });
    await assert.rejects(accounts.updateOne({ _id: 1 }, { $inc: { balance: -2 } }, { session: other }), (e) => {
      assert.equal(e.code, 112, e.stack);
      assert.equal(e.codeName, 'WriteConflict');
      assert.ok(e.hasErrorLabel('TransientTransactionError'));
      return true;
    });
    await other.abortTransaction();
    await one.commitTransaction();
    await Promise.all([one.endSession(), other.endSession()]);
    assert.deepEqual(await balances(), [69, 30]);
  });

  await check(`${how}: twenty transfers at once`, async () => {
    await Promise.all(Array.from({ length: 20 }, () => client.withSession((session) => transfer(session, 1))));
    assert.deepEqual(await balances(), [49, 50]);
  });

  await check(`${how}: a causally consistent session`, async () => {
    await client.withSession({ causalConsistency: true }, async (session) => {
      await savings.insertOne({ _id: 2 }, { session });
      assert.ok(session.operationTime && session.clusterTime);
      assert.deepEqual(await savings.findOne({ _id: 2 }, { session, readConcern: 'majority' }), { _id: 2 });
    });
  });
  await client.close();
}
done();
