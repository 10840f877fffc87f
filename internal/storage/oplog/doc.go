// Package oplog makes the entries of the oplog: what a transaction does to documents and collections, as MongoDB writes it
// (op i, u, d, c, n; deltas of version 2; applyOps for several at once), and the timestamps that give entries their places. An
// entry is a record of the collection local.oplog.rs whose id is its timestamp, so that it is read like any other. The package
// does not know who stores entries and who reads them.
package oplog
