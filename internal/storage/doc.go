// Package storage keeps documents and their index entries over an ordered key-value engine, together with the catalogue
// that says what there is. It does not know queries, commands, or who asks; and it reads time from its clock alone.
//
// # Layout
//
// Package layout makes every key and every record and entry; expiryorder says where a record lies in a collection with a TTL.
// docs/storage-format.md is the byte-exact page.
//
// Numbers of collections and indexes are never used twice, so what is left of a dropped one can be removed later, without
// anybody being kept waiting: the drop writes a note of what is garbage in its own commit, and the note goes when the
// garbage has gone.
//
// # What lies below
//
// What needs no Store is done in packages of their own, in snapshots and transactions that they are given. This package decides
// when, under which locks, and what a commit means. Each of them says what it does in its first sentence; docs/architecture.md lists them.
//
// # What lies above
//
// Some packages work at whole collections, by their handles (Collection), and change the catalogue by Store.Change: indexddl opens a
// store with them (Options.Drivers).
//
//	sweeper   deletes what is due, brings records into the order of their expiry, and vacuums
//	loosen    has what a TTL hides not come back when the TTL hides less
//	memberlog keeps within bounds what commits of a member of a replica set write of themselves
//	indexddl  changes the indexes and options of collections; index builds
//
// # Reading
//
// A View is what one operation sees: one version of the catalogue, one snapshot of the engine, one now. The two belong
// together: the version is read before the snapshot and compared after, and no writer works under a new version before
// it has been published. A document that has expired by a rule that hides is not there, for any reader and any writer;
// all reads pass Reader, which is where that is decided.
//
// # Writing
//
// A Txn is an engine transaction with a View over it. A Writer changes one collection in it, and holds that collection's
// lock, shared, until the transaction ends; whoever changes the catalogue holds it exclusively. A transaction of several statements holds it
// so that sweeps may come between its statements (ownership.Lasting, statement.go). Each change checks before
// it writes, so a refused one leaves nothing in the transaction. What must not happen twice is claimed in the engine: the
// record that is changed or deleted, and each unique key that is taken.
//
// # Commits
//
// A Commit (kv.Commit) carries what it means beside its keys (package meaning): what happens to which documents of which collection, and
// to the catalogue. The engine orders Commits, one at a time, and Store.apply brings what is in memory up to date with each:
// before it can be seen what readers have to be careful about, and after it what they may rely on. Store.Apply takes the Commits
// of another store by the same way; TestReplay compares the two.
//
// # Invariants
//
//   - What is in memory follows from the Commits, and Store.apply alone has it do so. Where a writer looks ahead of its Commit
//     (numbers of records, multikey bits that are seen, _ids that are known to be new) what it knows may be more than was
//     committed, never less.
//   - Every record has exactly the entries that its indexes' definitions say for it. Any other entry is dead: a tombstone of
//     the collection covers its record's id (expiryorder.Tombstones). Readers and writers pass over dead entries; vacuum removes them.
//   - A multikey bit is in memory before a commit that needs it becomes visible, and is stored by that same commit.
//   - The counters of a collection equal what a scan of it counts, hidden documents included.
//   - Under a catalogue version that is published, no writer works under an older one.
package storage
