// mongosh over TLS: the URI that it was started with has a certificate.
load('mongosh/tap.js');

const env = process.env;

function works(database) {
  database.shell.deleteMany({});
  database.shell.insertMany(Array.from({ length: 50 }, (_, i) => ({ _id: i, pad: 'x'.repeat(i * 1000) })));
  same(database.shell.find().sort({ _id: -1 }).limit(1).toArray()[0].pad.length, 49000);
}

function refusedAt(uri) {
  let connected = false;
  try {
    new Mongo(uri + '&serverSelectionTimeoutMS=500').getDB('admin').runCommand({ ping: 1 });
    connected = true;
  } catch (e) {
    holds(/MongoServerSelection|MongoNetwork/.test(e.name), e.name);
  }
  holds(!connected, 'it was let in');
}

check('over TLS with a certificate', () => works(db.getSiblingDB('e2e_tls')));
check('serverStatus tells of it', () => {
  const status = db.serverStatus();
  holds(status.transportSecurity['1.3'] > 0, EJSON.stringify(status.transportSecurity));
  same(status.security.SSLServerSubjectName, 'CN=server,O=Ebb');
});
check('rotateCertificates', () => same(db.adminCommand({ rotateCertificates: 1, message: 'from the shell' }).ok, 1));
check('refused without a certificate', () => refusedAt(env.EBB_BARE));
check('refused without TLS', () => refusedAt(env.EBB_PLAIN));
check('logged in by the certificate', () => works(new Mongo(env.EBB_X509).getDB('e2e_tls')));
check('not logged in by a certificate of no user', () => {
  let why = '';
  try {
    new Mongo(env.EBB_STRANGER).getDB('admin').runCommand({ ping: 1 });
  } catch (e) {
    why = e.message;
  }
  holds(/Could not find user/.test(why), why);
});
check('without a certificate where that is allowed', () => works(new Mongo(env.EBB_OPEN).getDB('e2e_tls')));
check('by the Unix domain socket', () => same(new Mongo(env.EBB_SOCKET).getDB('admin').runCommand({ whatsmyuri: 1 }).you, 'anonymous unix socket:27017'));
done();
