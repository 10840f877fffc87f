// Package ownership is what a store has to agree about with whoever else writes the same data. It asks for that by one interface,
// Ownership, and nowhere else takes itself for the only one: who may change a collection or the catalogue now, which numbers new records
// get, which _ids are known to be new.
//
// A store that no other process writes answers all of that itself ("all mine"): locks and latches in memory, the next number from
// memory, a bound above which _ids are new. That is the Ownership there is. An engine says whether it holds (kv.Capabilities.SoleWriter);
// over one that says no Of refuses, and says what is missing.
package ownership
