// mongosh logs in, and is let do what its user may do.
load('mongosh/tap.js');

const env = process.env;
const name = 'shell';

env.EBB_IN.split('\n').forEach((uri, i) => check(`logs in ${i}`, () => {
  const database = new Mongo(uri).getDB('e2e_login');
  database.shell.insertOne({});
  holds(database.shell.findOne(), 'there is no document');
}));
env.EBB_OUT.split('\n').forEach((uri, i) => check(`does not log in ${i}`, () => {
  let why = {};
  try {
    new Mongo(uri).getDB('admin').runCommand({ connectionStatus: 1 });
  } catch (e) {
    why = e;
  }
  same(why.code, 18);
}));
check('roles change while a user is connected', () => {
  const root = db.getSiblingDB(name);
  root.createUser({ user: name, pwd: name, roles: ['readWrite'] });
  const user = new Mongo(env.EBB_AS.replaceAll('NAME', name));
  const own = user.getDB(name);
  own.c.insertOne({ a: 1 });
  refused(user.getDB('e2e_login'), { find: 'c' }, 13, 'Unauthorized');
  refused(own, { createUser: 'other', pwd: 'x', roles: [] }, 13, 'Unauthorized');
  root.revokeRolesFromUser(name, ['readWrite']);
  root.grantRolesToUser(name, ['read']);
  same(own.c.findOne().a, 1);
  refused(own, { insert: 'c', documents: [{}] }, 13, 'Unauthorized');
  root.dropUser(name);
  refused(own, { find: 'c' }, 13, 'Unauthorized');
});
check('db.auth and logout', () => {
  const admin = new Mongo(env.EBB_IN.split('\n')[0].replace(/\/\/.*@/, '//')).getDB('admin');
  refused(admin, { usersInfo: 1 }, 13, 'Unauthorized');
  same(admin.auth('both', 'both').ok, 1);
  same(admin.runCommand({ usersInfo: 'both' }).users[0].user, 'both');
});
done();
