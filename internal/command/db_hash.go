package command

import (
	"crypto/md5"
	"encoding/hex"
	"hash"

	"github.com/ebbdb/ebb/internal/auth/privilege"
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/storage"
)

func dbHashCommands() []*Command {
	return []*Command{
		{Name: "dbHash", Aliases: []string{"dbhash"}, Needs: Needs{OnDatabase: actions(privilege.DBHash)}, Doc: "Gives one number for all that a database holds, to compare it by.", ReadConcern: true, Run: dbHash},
	}
}

// hashedCollection is one line of dbHash.
type hashedCollection struct {
	name   string
	uuid   [16]byte
	capped bool
	md5    string
}

func dbHash(op *Op) (bson.Doc, error) {
	wanted, err := hashedNames(op.Args.Value("collections"))
	if err != nil {
		return nil, err
	}
	hashed, err := op.hashDatabase(wanted)
	if err != nil {
		return nil, err
	}
	all := md5.New()
	for _, c := range hashed {
		all.Write([]byte(c.md5))
	}
	b := bson.Build().String("host", op.hostname()).Object("collections")
	for _, c := range hashed {
		b.String(c.name, c.md5)
	}
	b.End().Array("capped")
	n := 0
	for _, c := range hashed {
		if c.capped {
			b.String(bson.IndexKey(n), c.name)
			n++
		}
	}
	b.End().Object("uuids")
	for _, c := range hashed {
		b.Binary(c.name, 4, c.uuid[:])
	}
	return b.End().String("md5", inHex(all)).Int64("timeMillis", clock.Millis(op.Clock)-op.Now).Doc(), nil
}

func inHex(h hash.Hash) string { return hex.EncodeToString(h.Sum(nil)) }

// hashedNames reads the names to look at; nothing, and anything but an array of names, means all.
func hashedNames(v bson.Value) (map[string]bool, error) {
	if v.Type != bson.TypeArray || v.Doc().IsEmpty() {
		return nil, nil
	}
	names := map[string]bool{}
	for it := v.Doc().Iter(); it.Next(); {
		if it.Value().Type != bson.TypeString {
			return nil, mongoerr.New(mongoerr.BadValue, "collections entries have to be strings")
		}
		names[it.Value().Str()] = true
	}
	return names, nil
}

// hashDatabase hashes the collections of the operation's database that are wanted (all for nil), sorted by name.
func (op *Op) hashDatabase(wanted map[string]bool) (hashed []hashedCollection, err error) {
	view, err := op.view()
	if err != nil {
		return nil, err
	}
	defer view.Close()
	views := md5.New()
	found := false
	for _, c := range view.Catalog().Collections(op.DB) {
		if c.IsView() {
			found = true
			views.Write([]byte(c.NS.Coll))
			views.Write(c.Options.Doc)
			continue
		}
		if wanted != nil && !wanted[c.NS.Coll] || c.NS.Coll == systemProfile {
			continue
		}
		sum := md5.New()
		if err := op.hashCollection(view, c, sum); err != nil {
			return nil, err
		}
		name := c.NS
		if c.IsTimeSeries() { // of which MongoDB hashes the buckets
			name = catalog.BucketsName(name)
		}
		hashed = append(hashed, hashedCollection{name.Coll, c.UUID, c.Options.Capped, inHex(sum)})
	}
	if ns := (namespace.NS{DB: op.DB, Coll: systemViews}); found && (wanted == nil || wanted[systemViews]) {
		hashed = append(hashed, hashedCollection{systemViews, derivedUUID(ns), false, inHex(views)})
	}
	return hashed, nil
}

// hashCollection adds all documents to sum: in the order of _id where there is an index on it, so that the order of
// insertion does not matter, else as they lie.
func (op *Op) hashCollection(view *storage.View, c *catalog.Collection, sum hash.Hash) error {
	r, ok := view.CollectionByID(c.ID)
	if !ok {
		return nil
	}
	if id := c.IDIndex(); id != nil && !c.Options.Capped {
		return op.hashByID(r, sum)
	}
	cursor, err := r.Scan(storage.RecordScan{})
	if err != nil {
		return err
	}
	defer cursor.Close()
	for cursor.Next() {
		if op.Ctx.Err() != nil {
			return op.Ctx.Err()
		}
		sum.Write(cursor.Record().Doc)
	}
	return cursor.Err()
}

func (op *Op) hashByID(r *storage.Reader, sum hash.Hash) error {
	cursor, err := r.ScanIndex(storage.IndexScan{Index: r.Catalog().IDIndex(), Fetches: true})
	if err != nil {
		return err
	}
	defer cursor.Close()
	for cursor.Next() {
		if op.Ctx.Err() != nil {
			return op.Ctx.Err()
		}
		rec, ok, err := r.Get(cursor.Entry().RecordID)
		if err != nil {
			return err
		}
		if ok {
			sum.Write(rec.Doc)
		}
	}
	return cursor.Err()
}
