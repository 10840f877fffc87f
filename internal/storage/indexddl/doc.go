// Package indexddl changes which indexes a collection has, and what its options are: createIndexes, dropIndexes, collMod, reIndex, and the
// upgrade of indexes that an older Ebb kept otherwise. It decides in which steps and under which locks; what a change does to the
// definitions is package indexplan's, how entries are made package build's, and what becomes of documents that a TTL hides which
// hides less package loosen's.
//
// # A change
//
// Whoever holds the collection's locks (storage.Store.LockToChange) has what the change hides no longer go first, then builds the
// entries of what is new, and then puts the definitions into the catalogue in one commit (DDL.changeBuilt). On a full collection createIndexes does not
// hold them while it builds: see builder.
//
// # Dry runs
//
// Each command can be asked what it would do (DryRun). That looks at one view and changes nothing.
package indexddl
