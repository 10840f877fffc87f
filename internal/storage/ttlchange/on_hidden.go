package ttlchange

// OnHidden is what a command says of documents that are hidden, because they have expired by a rule that hides, and that would be
// seen again once it has changed that rule. What a rule does not hide everybody still sees: it stays in any case.
type OnHidden struct {
	// Keep makes them visible again; without it they are deleted first. While expiry is held they are not, unless Force says
	// so: then a change that would make any visible is refused. So is an index that hidden ones are in the way of; with Keep
	// those count as any others.
	Keep, Force bool
	// Replayed says that the change comes out of an oplog, where it was made already. While expiry is held it is not refused then: what
	// was deleted for it stands in that oplog, document by document, and the rest stays; where the oplog does not tell of each, the hidden
	// ones are deleted.
	Replayed bool
	// Since is, of a Replayed change that keeps, the earliest deadline of what the collection stored when it was made. What was due before
	// had been deleted by then, which no entry may tell, and stays so.
	Since int64
}

// Loosened is what became of them.
type Loosened struct {
	// Deleted is how many the command deleted, Kept how many became visible again.
	Deleted, Kept int64
}
