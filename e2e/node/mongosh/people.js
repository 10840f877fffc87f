// A person has logged in with the help of another device.
load('mongosh/tap.js');

check('logged in', () => {
  same(db.runCommand({ connectionStatus: 1 }).authInfo.authenticatedUsers[0].user, 'corp/ann');
  const docs = db.getSiblingDB('e2e_login').people;
  docs.insertOne({});
  holds(docs.findOne(), 'there is no document');
});
done();
