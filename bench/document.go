package main

import (
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"strconv"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// What documents hold: sixteen thousand users, a handful of kinds, fifty tags.
const (
	users     = 16_384
	tagWords  = 50
	noteBytes = 60 // twice as many characters
)

// idOf is the _id of the n-th document. It rises, as those that drivers make do, and nobody needs to keep it.
func idOf(n int64) bson.ObjectID {
	var id bson.ObjectID
	binary.BigEndian.PutUint32(id[:], 0x69200000)
	binary.BigEndian.PutUint64(id[4:], uint64(n))
	return id
}

// document is the n-th one, about 300 bytes. Its date is at; with an index on seq, `range` asks for neighbours.
func document(r *rand.Rand, n int64, at time.Time) bson.D {
	return bson.D{
		{Key: "_id", Value: idOf(n)},
		{Key: "at", Value: bson.NewDateTimeFromTime(at)},
		{Key: "seq", Value: n},
		{Key: "user", Value: "user-" + strconv.Itoa(r.IntN(users))},
		{Key: "kind", Value: [...]string{"new", "open", "held", "done"}[r.IntN(4)]},
		{Key: "score", Value: r.Float64()},
		{Key: "amount", Value: r.Int64N(1 << 40)},
		{Key: "tags", Value: bson.A{"t" + strconv.Itoa(r.IntN(tagWords)), "t" + strconv.Itoa(r.IntN(tagWords))}},
		{Key: "note", Value: note(r)},
	}
}

func note(r *rand.Rand) string {
	var b [noteBytes]byte
	for i := 0; i < len(b); i += 4 {
		binary.LittleEndian.PutUint32(b[i:], r.Uint32())
	}
	return hex.EncodeToString(b[:])
}

// dice are the same in every run.
func dice(n int) *rand.Rand { return rand.New(rand.NewPCG(20261121, uint64(n))) }

// maxSecondary is how many secondary indexes there are to choose from.
const maxSecondary = 5

// secondary are indexes for documents, in the order in which `indexes-N` adds them; the last is multikey.
func secondary() []bson.D {
	return []bson.D{{{Key: "seq", Value: 1}}, {{Key: "user", Value: 1}}, {{Key: "kind", Value: 1}, {Key: "at", Value: 1}},
		{{Key: "amount", Value: 1}}, {{Key: "tags", Value: 1}}}
}
