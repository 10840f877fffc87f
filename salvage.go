package ebb

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/dbpath"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/kv/inspect"
	"github.com/ebbdb/ebb/internal/match"
	"github.com/ebbdb/ebb/internal/member"
	"github.com/ebbdb/ebb/internal/query"
	"github.com/ebbdb/ebb/internal/raftlog"
	"github.com/ebbdb/ebb/internal/storage/salvage"
)

// Salvaged is what Salvage has found.
type Salvaged struct {
	Collections int
	Documents   int64
	// Copied is how much of each collection that has documents, or had.
	Copied []Copied
	// Lost are lines about what could not be read, no more than maxLost of LostCount.
	Lost      []string
	LostCount int
	// LeftOut are the names of the collections that a member of a replica set keeps for itself. Restored, they would make another server
	// out of step with a set that it is not of; mongodump leaves them out, too.
	LeftOut []string
}

// Copied is how much of a collection Salvage has copied.
type Copied struct {
	// Namespace is what it is called in the files.
	Namespace string
	Documents int64
	// Of is how many documents it had, -1 where that cannot be read. Where deleted ones are copied too it is less than Documents.
	Of int64
}

// IsComplete says whether nothing is known to be lost.
func (s *Salvaged) IsComplete() bool {
	return s.LostCount == 0 && !slices.ContainsFunc(s.Copied, func(c Copied) bool { return c.Documents < c.Of })
}

// maxLost bounds how many lines are kept.
const maxLost = 1000

// lostDatabase is where documents go whose collection the catalogue has lost.
const lostDatabase = "lost"

// Salvage copies what can be read of a data directory's store, damaged or not, to files as mongodump makes them, which mongorestore
// reads: out/database/collection.bson, and collection.metadata.json with options and indexes. It changes nothing in the data directory, which no server
// may use meanwhile. out must not exist, or be empty. What has expired and is not removed yet is among it,
// and what a member of a replica set keeps for itself is not.
func Salvage(path, out string) (*Salvaged, error) {
	held, err := dbpath.Look(path)
	if err != nil {
		return nil, err
	}
	defer held.Close()
	if entries, err := os.ReadDir(out); err == nil && len(entries) > 0 {
		return nil, fmt.Errorf("%s is not empty", out)
	}
	d := &dump{dir: out}
	s := &salvage.Reader{Indexes: index.NewParser(match.NewParser()), Collection: d.collection, Document: d.document, Lost: d.lost}
	err = inspect.Salvage(vfs.Default, filepath.Join(path, storeDir), d.lost, s.Place, s.Pair)
	if err := errors.Join(err, d.finish()); err != nil {
		return nil, err
	}
	if err := d.lookAtLog(filepath.Join(path, member.LogDir), s.Last()); err != nil {
		return nil, err
	}
	d.compare(s.Counted)
	return &d.Salvaged, nil
}

// lookAtLog tells how much a member's log has that is not in its store, which is behind where the member did not end in order.
func (d *dump) lookAtLog(dir string, last uint64) error {
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	left, err := raftlog.Left(vfs.Default, dir, last, d.lost)
	if err != nil {
		return fmt.Errorf("look at the replica set's log: %w", err)
	}
	if left > 0 {
		d.lost(fmt.Sprintf("%d commits behind the last in the store, number %d, which are in the replica set's log (%s) only", left, last, member.LogDir))
	}
	return nil
}

// dump writes the files. Documents come collection by collection.
type dump struct {
	Salvaged
	dir    string
	number uint32
	file   *os.File
	buffer *bufio.Writer
	// buckets are of the time series that the file is of; nil for other collections.
	buckets *query.Buckets
	copied  map[uint32]*Copied
}

// of is what is copied of a collection.
func (d *dump) of(number uint32, database, name string) *Copied {
	if d.copied == nil {
		d.copied = map[uint32]*Copied{}
	}
	if d.copied[number] == nil {
		d.copied[number] = &Copied{Namespace: database + "." + name}
	}
	return d.copied[number]
}

// compare puts beside what was copied what there was, by the names.
func (d *dump) compare(counted func(number uint32) (int64, bool)) {
	for number, c := range d.copied {
		of, ok := counted(number)
		if c.Of = of; !ok {
			c.Of = -1
		}
		if c.Documents > 0 || c.Of > 0 {
			d.Copied = append(d.Copied, *c)
		}
	}
	slices.SortFunc(d.Copied, func(a, b Copied) int { return cmp.Compare(a.Namespace, b.Namespace) })
}

func (d *dump) lost(what string) {
	if d.LostCount++; len(d.Lost) < maxLost {
		d.Lost = append(d.Lost, what)
	}
}

// path is a file's of a collection. mongodump escapes what is not part of a file's name so.
func (d *dump) path(database, collection, suffix string) (string, error) {
	dir := filepath.Join(d.dir, url.PathEscape(database))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	return filepath.Join(dir, url.PathEscape(collection)+suffix), nil
}

func (d *dump) collection(coll *catalog.Collection) error {
	if coll.OfReplicaSet() {
		d.LeftOut = append(d.LeftOut, coll.NS.String())
		return nil
	}
	d.Collections++
	kind := "collection"
	switch {
	case coll.IsView():
		kind = "view"
	case coll.IsTimeSeries():
		kind = "timeseries"
	}
	b := bson.Build().Document("options", coll.Options.Doc).Array("indexes")
	for i, def := range coll.Indexes {
		b.Document(bson.IndexKey(i), def.Listed())
	}
	b.End().String("uuid", fmt.Sprintf("%x", coll.UUID)).String("collectionName", coll.NS.Coll).String("type", kind)
	path, err := d.path(coll.NS.DB, coll.NS.Coll, ".metadata.json")
	if err != nil {
		return err
	}
	if err := os.WriteFile(path, b.Doc().JSON(), 0o600); err != nil || coll.IsView() {
		return err
	}
	d.of(coll.ID, coll.NS.DB, coll.NS.Coll)
	if path, err = d.path(coll.NS.DB, fileOf(coll), ".bson"); err != nil {
		return err
	}
	return os.WriteFile(path, nil, 0o600)
}

// fileOf is what the file of a collection's documents is called. mongorestore wants a time series as its buckets.
func fileOf(coll *catalog.Collection) string {
	if coll.IsTimeSeries() {
		return catalog.BucketsName(coll.NS).Coll
	}
	return coll.NS.Coll
}

func (d *dump) document(coll *catalog.Collection, number uint32, doc bson.Doc) error {
	if coll != nil && coll.OfReplicaSet() {
		return nil
	}
	if d.file == nil || d.number != number {
		if err := d.begin(coll, number); err != nil {
			return err
		}
	}
	if d.buckets != nil {
		if doc.Lookup(coll.Options.TimeSeries.TimeField).Type != bson.TypeDate {
			d.lost(fmt.Sprintf("a measurement of %s, whose time is damaged", coll.NS))
			return nil
		}
		doc = d.buckets.Add(doc)
	}
	d.Documents++
	d.copied[number].Documents++
	_, err := d.buffer.Write(doc)
	return err
}

func (d *dump) begin(coll *catalog.Collection, number uint32) error {
	if err := d.finish(); err != nil {
		return err
	}
	database, name := lostDatabase, fmt.Sprintf("collection_%d", number)
	file := name
	if coll != nil {
		database, name, file = coll.NS.DB, coll.NS.Coll, fileOf(coll)
	} else {
		d.lost(fmt.Sprintf("the name of collection %d, whose documents are in %s.%s", number, database, name))
	}
	path, err := d.path(database, file, ".bson")
	if err != nil {
		return err
	}
	if d.file, err = os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600); err != nil {
		return err
	}
	d.of(number, database, name)
	d.number, d.buffer, d.buckets = number, bufio.NewWriterSize(d.file, 1<<20), nil
	if coll != nil && coll.IsTimeSeries() {
		d.buckets = query.NewBuckets(coll.Options.TimeSeries)
	}
	return nil
}

func (d *dump) finish() error {
	if d.file == nil {
		return nil
	}
	var err error
	if d.buckets != nil {
		_, err = d.buffer.Write(d.buckets.Last())
	}
	err = errors.Join(err, d.buffer.Flush(), d.file.Sync(), d.file.Close())
	d.file = nil
	return err
}
