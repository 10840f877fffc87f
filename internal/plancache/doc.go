// Package plancache remembers, a collection at a time, which plan has won for queries of a shape, and which indexes an
// operator lets a shape use. It is pure data: it runs nothing, and knows neither plans nor stores.
//
// # How an entry lives
//
// A race of plans puts its winner here with the works that it took. The first winner of a shape is inactive: it is not
// used, and the next query of the shape races again. Only when a race needs no more works than the entry says does the
// entry become active, so that one lucky or unlucky query decides nothing. A race that needs more makes the inactive
// entry's works grow, so that a shape that is always dear becomes active in the end. Whoever runs an active entry's plan
// and has not got a batch within [Entry.MaxWorks] says so with [Cache.Deactivate] and races again; a cheaper winner takes
// an active entry's place.
//
// Invariants: a collection has at most MaxEntries entries, of which the one not used for longest goes first; an entry is
// given only under the definition of the collection that it was put under; entries are not changed once they are given out.
package plancache
