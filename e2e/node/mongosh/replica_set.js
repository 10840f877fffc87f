// The shell's helpers for replica sets, with a server that was started with --replSet and nothing more.
load('mongosh/tap.js');

check('before rs.initiate()', () => {
  refused(db.getSiblingDB('admin'), { replSetGetStatus: 1 }, 94, 'NotYetInitialized');
  same(db.hello().isreplicaset, true);
  same(db.hello().isWritablePrimary, false);
});

check('rs.initiate()', () => {
  const reply = rs.initiate();
  same(reply.ok, 1);
  holds(/^127\.0\.0\.1:\d+$/.test(reply.me), EJSON.stringify(reply));
  refused(db.getSiblingDB('admin'), { replSetInitiate: {} }, 23, 'AlreadyInitialized');
});

check('rs.status()', () => {
  const status = rs.status();
  same([status.set, status.myState, status.members.length, status.members[0].stateStr, status.members[0].self], ['e2e', 1, 1, 'PRIMARY', true]);
  same(String(status.term), '1');
});

check('rs.conf() and rs.reconfig()', () => {
  const config = rs.conf();
  same([config._id, config.version, config.members.length], ['e2e', 1, 1]);
  config.settings.heartbeatIntervalMillis = 5000;
  same(rs.reconfig(config).ok, 1);
  same([rs.conf().version, rs.conf().settings.heartbeatIntervalMillis], [2, 5000]);
});

check('rs.hello() and db.hello()', () => {
  for (const hello of [rs.hello(), db.hello(), rs.isMaster()]) {
    same([hello.setName, hello.setVersion, hello.secondary, hello.primary], ['e2e', 2, false, hello.me]);
    holds(hello.isWritablePrimary || hello.ismaster, 'the primary');
  }
});

check('rs.printReplicationInfo()', () => {
  db.one.insertOne({ _id: 1 });
  const info = db.getReplicationInfo();
  same(info.configuredLogSizeMB, 990);
  holds(info.tFirst && info.tLast, EJSON.stringify(info));
  holds(String(rs.printReplicationInfo()).length > 0, 'nothing is printed');
  const last = db.getSiblingDB('local').oplog.rs.find({ ns: `${db.getName()}.one` }).sort({ $natural: -1 }).limit(1).toArray();
  same(last.map((e) => [e.op, e.o]), [['i', { _id: 1 }]]);
});

check('a transaction', () => {
  const session = db.getMongo().startSession();
  const of = session.getDatabase(db.getName());
  session.startTransaction();
  of.one.insertOne({ _id: 2 });
  same(db.one.countDocuments(), 1);
  session.commitTransaction();
  same(db.one.countDocuments(), 2);
  session.endSession();
});

check('rs.stepDown()', () => {
  let refusal;
  try {
    rs.stepDown();
  } catch (e) {
    refusal = e;
  }
  holds(refusal && /No electable secondaries caught up/.test(refusal.message), `not refused: ${refusal}`);
  same(db.adminCommand({ replSetStepDown: 1, force: true }).ok, 1);
  eventually(20_000, 'it is elected again', () => db.hello().isWritablePrimary);
  same(String(rs.status().term), '2');
});

done();
