// Package layout is how documents and index entries lie in an ordered key-value store: the ids of records, every key and every
// value but the catalogue's documents. docs/storage-format.md is the byte-exact page. It knows no engine and reads no time.
//
//	r | collection | record id             → header, BSON             the record store
//	i | index | key string                 → record id, type bits     the index on _id
//	x | index | key string                 → record id, type bits     a unique index
//	x | index | key string | record id     → type bits                any other index
//	x | index | 1 | last modification | record id                     a TTL index on _ts: documents on the default
//	x | index | 2 | deadline | record id                              … and those with a ttl of their own
//	x | side table | generation | …        → side row                 of an index that is being built
//	c | …                                                             counters
//	m | …                                                             the catalogue, and what is kept beside it
package layout
