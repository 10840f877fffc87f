// Package member is a server's part in a replica set that has other members: it drives the log that they share, speaks with them, and has
// the server's database give way to one of another role when who leads changes. It knows the database and the server by two interfaces,
// and nothing of commands, connections of clients, or what a commit means.
//
// A Group is there in each server that was started with a set's name. It is empty until the set has other members: until somebody begins
// one here, or asks this server to join. From then on, and after each restart, it has a member, for good.
//
// What holds:
//   - a database has one role as long as it lives, so that nothing in memory is left of another one;
//   - what a member has ordered and lost the lead before it was committed was never in its store;
//   - what has expired goes by the primary's time, on each member (see time.go);
//   - nobody is heard who has not shown to be a member, where members can show it (see letters.go).
package member
