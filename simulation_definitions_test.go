package ebb

import (
	"fmt"
	"slices"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// simDefiner makes, changes and drops collections and indexes, and writes to them.
type simDefiner struct{ *simClient }

func (c *simDefiner) run() {
	c.each(func() error {
		coll := fmt.Sprint("x", c.random.IntN(2))
		text, db := "", "d"
		switch c.random.IntN(13) {
		case 0:
			text = fmt.Sprintf(`{create: %q}`, coll)
		case 1:
			text = fmt.Sprintf(`{createIndexes: %q, indexes: [{key: {a: 1}, name: "a"}, {key: {b: -1, a: 1}, name: "ba"}]}`, coll)
		case 2:
			text = fmt.Sprintf(`{createIndexes: %q, indexes: [{key: {at: 1}, name: "t", expireAfterSeconds: 1}]}`, []string{coll, "log"}[c.random.IntN(2)])
		case 3:
			text = fmt.Sprintf(`{dropIndexes: %q, index: %q}`, []string{coll, "log"}[c.random.IntN(2)], []string{"a", "t"}[c.random.IntN(2)])
		case 4:
			text = fmt.Sprintf(`{collMod: "q", index: {name: "t", expireAfterSeconds: %d}}`, c.random.IntN(3))
		case 5:
			text = fmt.Sprintf(`{drop: %q}`, coll)
		case 6:
			return c.fill("q")
		case 7:
			text, db = fmt.Sprintf(`{renameCollection: "d.%s", to: "d.x%d", dropTarget: %t}`, coll, c.random.IntN(2), c.random.IntN(2) == 0), "admin"
		case 8:
			text, db = fmt.Sprintf(`{setDefaultRWConcern: 1, defaultWriteConcern: {w: %s}}`, []string{"1", `"majority"`}[c.random.IntN(2)]), "admin"
		case 9:
			text = fmt.Sprintf(`{collMod: "h", index: {name: "t", expireAfterSeconds: %d}}`, 1+c.random.IntN(3))
		case 10:
			return c.fill("capped")
		default:
			return c.fill(coll)
		}
		body := bson.MustDoc(text)
		_, err := c.atPrimary(db, body, simPatience)
		switch code := codeOf(err); {
		case err == nil:
			c.s.counts.add(body.FirstKey())
		case mayBeDone(err):
		case slices.Contains([]mongoerr.Code{mongoerr.NamespaceExists, mongoerr.NamespaceNotFound, mongoerr.IndexNotFound, mongoerr.IndexOptionsConflict, mongoerr.IndexBuildAborted, mongoerr.IllegalOperation}, code):
		default:
			return fmt.Errorf("%s: %w", text, err)
		}
		return nil
	})
}

// fill writes to a collection: it inserts many, updates or deletes.
func (c *simDefiner) fill(coll string) (err error) {
	switch c.random.IntN(3) {
	case 0:
		list := bson.Build().Array("documents")
		for i := range 1 + c.random.IntN(30) {
			list.Object(bson.IndexKey(i)).Int64("a", c.random.Int64N(50)).Int64("b", c.random.Int64N(5)).Date("at", c.s.time.Load()+c.random.Int64N(4000)-1000).End()
		}
		c.txns++
		b := bson.Build().String("insert", coll).Fields(list.End().Doc()).Document("lsid", c.lsid).Int64("txnNumber", c.txns)
		_, err = c.atPrimary("d", b.Doc(), simPatience)
	case 1:
		_, err = c.write(`{update: %q, updates: [{q: {a: {$lt: %d}}, u: {$set: {b: [1, %d]}}}]}`, coll, c.random.IntN(50), c.random.IntN(9))
	default:
		_, err = c.write(`{delete: %q, deletes: [{q: {a: %d}, limit: 1}]}`, coll, c.random.IntN(50))
	}
	if err != nil && !mayBeDone(err) {
		return fmt.Errorf("write to %s: %w", coll, err)
	}
	return nil
}

func (c *simDefiner) check() error { return nil }
