package hostile

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// attacker is who makes an attack.
type attacker struct {
	db     *mongo.Database
	addr   string
	random *rand.Rand
}

// attackKind is one way to ask for much.
type attackKind struct {
	name string
	make func(ctx context.Context, a *attacker) error
}

func attacks() []attackKind {
	return []attackKind{
		{"sort", sortMuch}, {"park", parkSorted}, {"group", groupMuch}, {"facet", facetMuch}, {"window", windowMuch},
		{"join", joinMuch}, {"script", runScript}, {"regex", runRegex}, {"unread", readNothing}, {"large", readLarge},
		{"write", writeMuch}, {"index", buildIndex}, {"stall", sendHalf},
	}
}

func stage(name string, value any) bson.D { return bson.D{{Key: name, Value: value}} }

func (a *attacker) small() *mongo.Collection { return a.db.Collection("small") }

// pick is one of the fields.
func (a *attacker) pick(of ...string) string { return of[a.random.IntN(len(of))] }

// drain reads what the pipeline gives, as far as it likes.
func (a *attacker) drain(ctx context.Context, pipeline mongo.Pipeline) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	cursor, err := a.small().Aggregate(ctx, pipeline, options.Aggregate().SetAllowDiskUse(a.random.IntN(4) > 0).SetBatchSize(int32(1+a.random.IntN(2000))))
	if err != nil {
		return err
	}
	defer cursor.Close(context.Background())
	for n := a.random.IntN(20_000); n > 0 && cursor.Next(ctx); n-- {
	}
	return cursor.Err()
}

func sortMuch(ctx context.Context, a *attacker) error {
	p := mongo.Pipeline{stage("$sort", bson.D{{Key: a.pick("s", "n", "pad"), Value: 1 - 2*a.random.IntN(2)}, {Key: "_id", Value: 1}})}
	if a.random.IntN(2) == 0 {
		p = append(p, stage("$limit", 1+a.random.IntN(50_000)))
	}
	return a.drain(ctx, p)
}

// parkSorted leaves sorted cursors behind, more and more until the server has enough.
func parkSorted(ctx context.Context, a *attacker) error {
	cursor, err := a.small().Find(ctx, bson.D{}, options.Find().SetSort(bson.D{{Key: a.pick("s", "n", "k"), Value: 1}}).SetBatchSize(2))
	if err != nil {
		return err
	}
	if a.random.IntN(8) > 0 {
		return nil // and is never heard of again
	}
	defer cursor.Close(context.Background())
	for range 300 {
		if !cursor.Next(ctx) {
			return cursor.Err()
		}
	}
	return nil
}

func groupMuch(ctx context.Context, a *attacker) error {
	return a.drain(ctx, mongo.Pipeline{stage("$group", bson.D{{Key: "_id", Value: "$" + a.pick("k", "n", "s", "_id")},
		{Key: "all", Value: stage(a.pick("$push", "$addToSet"), a.pick("$$ROOT", "$pad", "$s"))},
		{Key: "top", Value: stage("$topN", bson.D{{Key: "n", Value: 50}, {Key: "sortBy", Value: bson.D{{Key: "n", Value: 1}}}, {Key: "output", Value: "$pad"}})}})})
}

func facetMuch(ctx context.Context, a *attacker) error {
	facets := bson.D{}
	for i := range 1 + a.random.IntN(8) {
		var p bson.A
		switch a.random.IntN(4) {
		case 0:
			p = bson.A{stage("$sort", bson.D{{Key: "s", Value: 1}}), stage("$limit", 40_000), stage("$project", bson.D{{Key: "s", Value: 1}})}
		case 1:
			p = bson.A{stage("$group", bson.D{{Key: "_id", Value: "$n"}, {Key: "a", Value: stage("$push", "$pad")}}), stage("$limit", 100)}
		case 2:
			p = bson.A{stage("$limit", a.random.IntN(80_000)+1)}
		default:
			p = bson.A{stage("$bucketAuto", bson.D{{Key: "groupBy", Value: "$s"}, {Key: "buckets", Value: 1 + a.random.IntN(500)},
				{Key: "output", Value: bson.D{{Key: "a", Value: stage("$push", "$s")}}}})}
		}
		facets = append(facets, bson.E{Key: fmt.Sprint("f", i), Value: p})
	}
	p := mongo.Pipeline{stage("$facet", facets)}
	if a.random.IntN(2) == 0 {
		p = append(p, stage("$unwind", "$f0"))
	}
	return a.drain(ctx, p)
}

func windowMuch(ctx context.Context, a *attacker) error {
	return a.drain(ctx, mongo.Pipeline{stage("$setWindowFields", bson.D{{Key: "partitionBy", Value: "$" + a.pick("k", "nothing")}, {Key: "sortBy", Value: bson.D{{Key: "n", Value: 1}}},
		{Key: "output", Value: bson.D{{Key: "w", Value: bson.D{{Key: a.pick("$push", "$max", "$addToSet"), Value: "$s"}, {Key: "window", Value: bson.D{{Key: "documents", Value: bson.A{-200, 0}}}}}}}}})})
}

func joinMuch(ctx context.Context, a *attacker) error {
	if a.random.IntN(2) == 0 {
		return a.drain(ctx, mongo.Pipeline{stage("$limit", 2000), stage("$graphLookup", bson.D{{Key: "from", Value: "small"}, {Key: "startWith", Value: "$next"}, {Key: "connectFromField", Value: "next"},
			{Key: "connectToField", Value: "_id"}, {Key: "as", Value: "way"}, {Key: "maxDepth", Value: 1 + a.random.IntN(2000)}})})
	}
	return a.drain(ctx, mongo.Pipeline{stage("$lookup", bson.D{{Key: "from", Value: "small"}, {Key: "localField", Value: "k"}, {Key: "foreignField", Value: "k"}, {Key: "as", Value: "all"}}),
		stage("$limit", 1+a.random.IntN(500))})
}

func runScript(ctx context.Context, a *attacker) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	code := a.pick("function() { for (;;); }", "'x'.repeat(1e9).length > 0", "var a = []; for (;;) a.push(new Array(1000).fill(this));",
		strings.Repeat("(", 30_000), "this.n % 7 == 3", "JSON.stringify(this).split('').sort().join('').length > 5", "new Array(1e9).join('x') == ''")
	cursor, err := a.small().Find(ctx, bson.D{{Key: "$where", Value: code}}, options.Find().SetLimit(500))
	if err != nil {
		return err
	}
	defer cursor.Close(context.Background())
	for cursor.Next(ctx) {
	}
	return cursor.Err()
}

func runRegex(ctx context.Context, a *attacker) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	pattern := a.pick(`(a+)+$`, `(l|o|r|e|m| )*(l|o|r|e|m| )*x$`, `^(?=.*ipsum)(lorem ipsum )+z`, `(.*)(.*)(.*)\3\2\1q`)
	_, err := a.small().CountDocuments(ctx, bson.D{{Key: "pad", Value: bson.Regex{Pattern: pattern}}})
	return err
}

// readLarge has documents of many megabytes made and sent.
func readLarge(ctx context.Context, a *attacker) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	projection := bson.D{}
	if a.random.IntN(2) == 0 {
		projection = bson.D{{Key: "twice", Value: stage("$concat", bson.A{"$pad", "$pad"})}}
	}
	cursor, err := a.db.Collection("large").Find(ctx, bson.D{}, options.Find().SetProjection(projection))
	if err != nil {
		return err
	}
	defer cursor.Close(context.Background())
	for cursor.Next(ctx) {
	}
	return cursor.Err()
}

func writeMuch(ctx context.Context, a *attacker) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	coll := a.db.Collection("written")
	var docs []any
	pad := strings.Repeat("w", 1+a.random.IntN(4<<20))
	for range 1 + a.random.IntN(8) {
		docs = append(docs, bson.D{{Key: "pad", Value: pad}})
	}
	if _, err := coll.InsertMany(ctx, docs); err != nil {
		return err
	}
	_, err := coll.DeleteMany(ctx, bson.D{})
	return err
}

func buildIndex(ctx context.Context, a *attacker) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	name := fmt.Sprint("i", a.random.IntN(4))
	_, err := a.small().Indexes().CreateOne(ctx, mongo.IndexModel{Keys: bson.D{{Key: "pad", Value: 1}, {Key: name, Value: 1}}, Options: options.Index().SetName(name)})
	if err != nil {
		return err
	}
	return a.small().Indexes().DropOne(ctx, name)
}

// command is a message with one document.
func command(doc bson.D) []byte {
	body, err := bson.Marshal(doc)
	if err != nil {
		panic(err)
	}
	m := make([]byte, 21, 21+len(body))
	binary.LittleEndian.PutUint32(m, uint32(21+len(body)))
	binary.LittleEndian.PutUint32(m[12:], 2013)
	return append(m, body...)
}

// readNothing asks many times for what is as large as a reply may be, and does not read it for a while.
func readNothing(ctx context.Context, a *attacker) error {
	var socks []net.Conn
	defer func() {
		for _, c := range socks {
			c.Close()
		}
	}()
	for range 10 + a.random.IntN(60) {
		c, err := net.DialTimeout("tcp", a.addr, 5*time.Second)
		if err != nil {
			return err
		}
		socks = append(socks, c)
		_ = c.SetDeadline(time.Now().Add(10 * time.Second))
		if _, err := c.Write(command(bson.D{{Key: "find", Value: "small"}, {Key: "batchSize", Value: 100_000}, {Key: "$db", Value: dbName}})); err != nil {
			return err
		}
	}
	select {
	case <-time.After(time.Duration(a.random.IntN(8000)) * time.Millisecond):
	case <-ctx.Done():
	}
	for _, c := range socks {
		if a.random.IntN(10) == 0 {
			_, _ = io.CopyN(io.Discard, c, 1<<20)
		}
	}
	return nil
}

// sendHalf promises large messages and sends parts of them.
func sendHalf(ctx context.Context, a *attacker) error {
	var socks []net.Conn
	defer func() {
		for _, c := range socks {
			c.Close()
		}
	}()
	for range 1 + a.random.IntN(30) {
		c, err := net.DialTimeout("tcp", a.addr, 5*time.Second)
		if err != nil {
			return err
		}
		socks = append(socks, c)
		_ = c.SetDeadline(time.Now().Add(2 * time.Second))
		m := make([]byte, 16+a.random.IntN(1<<20))
		binary.LittleEndian.PutUint32(m, 47_000_000)
		binary.LittleEndian.PutUint32(m[12:], 2013)
		_, _ = c.Write(m)
	}
	select {
	case <-time.After(time.Duration(a.random.IntN(4000)) * time.Millisecond):
	case <-ctx.Done():
	}
	return nil
}
