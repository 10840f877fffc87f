// Package ownership is what a store may do because it is the only one that writes its data: it keeps writers apart by locks in memory
// (Lock, Latches), hands out numbers for records (Sequence), and knows of _ids that they are new (UniqueFloor). With a second process
// that writes the same data none of this would hold; what replaces it belongs here.
package ownership
