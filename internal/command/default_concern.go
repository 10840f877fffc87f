package command

import (
	"context"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/replset"
)

// concernDefaults are the read and write concern of those who say none, where somebody has set them. They are kept in config.settings.
type concernDefaults struct {
	stored bson.Doc
	// read and write are nil where they are not set; fields are those of write.
	read, write bson.Doc
	fields      concernFields
	// loaded is when the server has read them, in milliseconds.
	loaded int64
}

var settingsNS = namespace.NS{DB: "config", Coll: "settings"}

const defaultsID = "ReadWriteConcernDefaults"

// readDefaults reads what is stored of the defaults; nil where nothing is.
func readDefaults(stored bson.Doc, now int64) *concernDefaults {
	if stored == nil {
		return nil
	}
	d := &concernDefaults{stored: stored.Clone(), loaded: now}
	part := func(key string) bson.Doc {
		if v := d.stored.Lookup(key); v.Type == bson.TypeObject {
			return v.Doc()
		}
		return nil
	}
	d.read, d.write = part("defaultReadConcern"), part("defaultWriteConcern")
	if d.write != nil {
		f, err := parseConcern(NewArgs("defaultWriteConcern", d.write))
		if err == nil {
			err = f.checkW(true)
		}
		if err != nil { // somebody has written to the collection
			d.write = nil
			return d
		}
		d.fields = f
	}
	return d
}

// loadDefaults reads the defaults anew.
func (s *Server) loadDefaults(ctx context.Context) error {
	doc, err := s.Query.StoredSetting(ctx, settingsNS, bson.String(defaultsID))
	if err == nil {
		s.defaults.Store(readDefaults(doc, clock.Millis(s.Clock)))
	}
	return err
}

// defaultConcern is what the command takes from the defaults when it says no write concern; nil for nothing.
func (op *Op) defaultConcern() *concernDefaults {
	if op.Replica == nil {
		return nil
	}
	d := op.defaults.Load()
	if d == nil || d.write == nil || !op.Command.WriteConcern || op.multi && !op.Command.endsTransaction() {
		return nil
	}
	return d
}

// appendDefaults appends the read and write concern of those who say none, and who says so.
func (s *Server) appendDefaults(b *bson.Builder) {
	read, write := bson.Build().String("level", "local").Doc(), bson.Build().String("w", "majority").Int32("wtimeout", 0).Doc()
	readSource, writeSource, loaded := "implicit", "implicit", s.started.UnixMilli()
	d := s.defaults.Load()
	if d != nil {
		loaded = d.loaded
		if d.read != nil {
			read, readSource = d.read, "global"
		}
		if d.write != nil {
			write, writeSource = d.fields.document(""), "global"
		}
	}
	b.Document("defaultReadConcern", read).Document("defaultWriteConcern", write)
	if d != nil {
		for _, name := range [...]string{"updateOpTime", "updateWallClockTime"} {
			if v := d.stored.Lookup(name); !v.IsMissing() {
				b.Value(name, v)
			}
		}
	}
	b.String("defaultWriteConcernSource", writeSource).String("defaultReadConcernSource", readSource).Date("localUpdateWallClockTime", loaded)
}

func getDefaultRWConcern(op *Op) (bson.Doc, error) {
	op.Args.Ignore(op.Name())
	cached := op.Args.Bool("inMemory", false)
	if err := op.Args.Done(); err != nil {
		return nil, err
	}
	if op.Replica == nil {
		return nil, notOnStandalone(op)
	}
	if !cached {
		if err := op.loadDefaults(op.Ctx); err != nil {
			return nil, err
		}
	}
	b := bson.Build()
	op.appendDefaults(b)
	if cached {
		b.Bool("inMemory", true)
	}
	return b.Doc(), nil
}

func setDefaultRWConcern(op *Op) (bson.Doc, error) {
	a := op.Args
	a.Ignore(op.Name())
	read, write := a.Doc("defaultReadConcern"), a.Doc("defaultWriteConcern")
	if err := a.Done(); err != nil {
		return nil, err
	}
	if op.Replica == nil {
		return nil, notOnStandalone(op)
	}
	if err := op.storeDefaults(read, write); err != nil {
		return nil, err
	}
	op.noteLeft()
	if e := op.WriteConcern.unsatisfied; e != nil { // of the command itself, which MongoDB's fails by
		return nil, e
	}
	b := bson.Build()
	op.appendDefaults(b)
	return b.Doc(), nil
}

// storeDefaults changes the defaults that are given, that is those that are not nil; an empty one is set no more.
func (op *Op) storeDefaults(read, write bson.Doc) error {
	return op.alter(func(ctx context.Context, s *Server) error {
		if err := s.loadDefaults(ctx); err != nil {
			return err
		}
		doc, err := op.nextDefaults(read, write)
		if err != nil {
			return err
		}
		now := clock.Millis(s.Clock)
		if err := s.Query.StoreSetting(ctx, settingsNS, doc, now); err != nil {
			return err
		}
		s.defaults.Store(readDefaults(doc, now))
		s.Log.Info("Successfully set RWC defaults", "value", doc.String())
		return nil
	})
}

// nextDefaults is what is stored of the defaults when those are changed that are given.
func (op *Op) nextDefaults(read, write bson.Doc) (bson.Doc, error) {
	current := op.defaults.Load()
	if current == nil {
		current = &concernDefaults{}
	}
	if read == nil && write == nil {
		return nil, mongoerr.New(mongoerr.BadValue, "At least one of the \"defaultReadConcern\" or \"defaultWriteConcern\" fields must be present")
	}
	if err := checkDefaultRead(read); err != nil {
		return nil, err
	}
	fields, err := op.checkDefaultWrite(write)
	if err != nil {
		return nil, err
	}
	if write != nil && write.IsEmpty() && current.write != nil {
		return nil, mongoerr.New(mongoerr.IllegalOperation, "The global default write concern cannot be unset once it is set.")
	}
	b := bson.Build().String("_id", defaultsID)
	switch {
	case read == nil && current.read != nil:
		b.Document("defaultReadConcern", current.read)
	case read != nil && !read.IsEmpty():
		b.Document("defaultReadConcern", read)
	}
	switch {
	case write == nil && current.write != nil:
		b.Document("defaultWriteConcern", current.write)
	case write != nil && !write.IsEmpty():
		b.Document("defaultWriteConcern", fields.document(""))
	}
	at := op.clusterTime()
	return b.Timestamp("updateOpTime", at.Seconds(), at.Counter()).Date("updateWallClockTime", clock.Millis(op.Clock)).Doc(), nil
}

// checkDefaultRead refuses what cannot be everybody's read concern.
func checkDefaultRead(doc bson.Doc) error {
	if doc == nil {
		return nil
	}
	a := NewArgs("defaultReadConcern", doc)
	level, given := a.String("level")
	for _, name := range [...]string{"afterOpTime", "afterClusterTime", "atClusterTime"} {
		if !a.Value(name).IsMissing() {
			a.Fail(mongoerr.New(mongoerr.BadValue, "'%s' is not suitable for the default read concern", name))
		}
	}
	a.provenance()
	if err := a.Done(); err != nil {
		return err
	}
	switch {
	case given && !knownLevel(level):
		return mongoerr.New(mongoerr.BadValue, "Enumeration value '%s' for field 'defaultReadConcern.level' is not a valid value.", level)
	case level == "snapshot" || level == "linearizable":
		return mongoerr.New(mongoerr.BadValue, "level: '%s' is not suitable for the default read concern", level)
	case a.Has("provenance"):
		return mongoerr.New(mongoerr.BadValue, "'provenance' must be unset in default read concern")
	}
	return nil
}

// checkDefaultWrite refuses what cannot be everybody's write concern.
func (op *Op) checkDefaultWrite(doc bson.Doc) (f concernFields, err error) {
	if doc == nil || doc.IsEmpty() {
		return f, nil
	}
	a := NewArgs("defaultWriteConcern", doc)
	if f, err = parseConcern(a); err == nil {
		err = f.checkW(true)
	}
	if err != nil {
		return f, err
	}
	name, isMode := f.mode()
	switch {
	case f.w.IsMissing() || f.w.IsNumber() && f.document("").Lookup("w").TruncInt64() < 1:
		return f, mongoerr.New(mongoerr.BadValue, "Unacknowledged write concern is not suitable for the default write concern")
	case a.Has("provenance"):
		return f, mongoerr.New(mongoerr.BadValue, "'provenance' must be unset in default write concern")
	case isMode && op.Replica.View().Config.Settings.Modes.Lookup(name).Type != bson.TypeObject:
		return f, unknownMode(name)
	}
	return f, nil
}

// checkDefaultMode refuses a configuration of the replica set that lacks the write concern mode that is everybody's.
func (s *Server) checkDefaultMode(next *replset.Config) error {
	d := s.defaults.Load()
	if d == nil || d.write == nil {
		return nil
	}
	if name, isMode := d.fields.mode(); isMode && next.Settings.Modes.Lookup(name).Type != bson.TypeObject {
		return mongoerr.Prefix("May not remove custom write concern definition from config while it is in use as the default write concern. "+
			"Change the default write concern to a non-conflicting setting and try the reconfig again. :: caused by :: ", unknownMode(name))
	}
	return nil
}
