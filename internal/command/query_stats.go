package command

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"math"
	"strconv"
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/host"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/parameter"
	"github.com/ebbdb/ebb/internal/query"
)

// Query statistics, as MongoDB's $queryStats tells them, are collected of find, distinct and aggregate while internalQueryStatsRateLimit lets
// any in, which by default is none: finding the shape of a query means parsing it once more. A getMore adds to what its cursor's command has
// begun, where that has an entry.

const (
	queryStatsRateName = "internalQueryStatsRateLimit"
	queryStatsSizeName = "internalQueryStatsCacheSize"
	// maxQueryStatsKey is how long the shape of a query may be to be kept.
	maxQueryStatsKey = 64 << 10
)

// addQueryStats enters the parameters.
func addQueryStats(r *parameter.Registry) {
	parameter.NewInt(r, queryStatsRateName, parameter.Both, 0, -1, math.MaxInt32, false)
	parameter.NewString(r, queryStatsSizeName, parameter.Both, "1%", 32)
	p := r.Lookup(queryStatsSizeName)
	set := p.Set
	p.Set = func(v bson.Value) error {
		if v.Type == bson.TypeString {
			if _, err := memorySize(v.Str(), &host.Machine{}); err != nil {
				return err
			}
		}
		return set(v)
	}
}

// memorySize reads a size as MongoDB writes it: "1%" of the memory there is, or "100MB".
func memorySize(text string, m *host.Machine) (int64, error) {
	bad := mongoerr.New(mongoerr.BadValue, "Unable to parse memory size string: %s", text)
	units := map[string]float64{"kb": 1 << 10, "mb": 1 << 20, "gb": 1 << 30}
	lower := strings.ToLower(strings.TrimSpace(text))
	if percent, ok := strings.CutSuffix(lower, "%"); ok {
		n, err := strconv.ParseFloat(percent, 64)
		if err != nil || !(n >= 0 && n <= 50) {
			return 0, bad
		}
		memory := m.MemoryBytes
		if m.MemoryLimit > 0 {
			memory = min(memory, m.MemoryLimit)
		}
		return int64(n / 100 * float64(memory)), nil
	}
	if len(lower) < 3 {
		return 0, bad
	}
	n, err := strconv.ParseFloat(lower[:len(lower)-2], 64)
	unit, ok := units[lower[len(lower)-2:]]
	if err != nil || !ok || !(n >= 0 && n*unit < 1<<40) {
		return 0, bad
	}
	return int64(n * unit), nil
}

// queryStatsBytes is how much the store may take.
func (s *Server) queryStatsBytes() int64 {
	n, _ := memorySize(s.Params.Lookup(queryStatsSizeName).Get().Str(), s.theMachine())
	return n
}

// countQuery adds a query that has ended well to the statistics of its shape.
func (op *Op) countQuery(micros int64) {
	limit, _ := op.queryStatsRate.Get().AsInt64()
	if limit == 0 {
		return
	}
	command, create := op.Args.Document(), true
	switch op.Command.Name {
	case "find", "distinct", "aggregate":
	case "getMore":
		command, create = op.originating, false
	default:
		return
	}
	if command == nil || create && !op.queryStats.admits(clock.Millis(op.Clock)/1000, limit) {
		return
	}
	shape, err := op.represent(command)
	if err != nil || shape.System != "" {
		return
	}
	key := op.queryStatsKey(shape, command)
	if len(key) > maxQueryStatsKey {
		return
	}
	st := &op.Running.Stats
	op.queryStats.update(key, create, op.queryStatsBytes(), func(e *queryStatsEntry) {
		if e.count == 0 {
			e.first, e.shape, e.hash = op.Now, shape.Hash, query.ShapeHash(string(key))
		}
		e.latest, e.last = op.Now, micros
		if create {
			e.count++
			e.begun.add(micros)
			e.sorts.add(st.HasSortStage.Load())
			e.spills.add(st.UsedDisk.Load())
		}
		e.total.add(micros)
		e.returned.add(st.Returned.Load())
		e.keys.add(st.KeysExamined.Load())
		e.docs.add(st.DocsExamined.Load())
	})
}

// queryStatsKey is what tells one entry from another: the shape, who asks, and how.
func (op *Op) queryStatsKey(shape query.Representative, command bson.Doc) bson.Doc {
	b := bson.Build().Document("queryShape", shape.Shape)
	if c := op.Conn.Client(); c.Metadata != nil {
		b.Document("client", c.Metadata)
	}
	b.String("collectionType", op.collectionTypeOf(shape.NS))
	for _, name := range [...]string{"hint", "readConcern"} {
		if v := command.Lookup(name); !v.IsMissing() {
			b.Value(name, v)
		}
	}
	for _, name := range [...]string{"batchSize", "maxTimeMS"} {
		if !command.Lookup(name).IsMissing() {
			b.String(name, "?number")
		}
	}
	if !command.Lookup("comment").IsMissing() {
		b.String("comment", "?"+command.Lookup("comment").Type.String())
	}
	return b.Doc()
}

func (op *Op) collectionTypeOf(ns namespace.NS) string {
	if ns.Coll == "" {
		return "virtual"
	}
	switch c := op.Query.Store.Catalog().Collection(ns); {
	case c == nil:
		return "nonExistent"
	case c.IsView():
		return "view"
	case c.IsTimeSeries():
		return "timeseries"
	}
	return "collection"
}

// queryStatsStage is what $queryStats shows, with the names of fields, collections and databases replaced where its argument says so.
func (s *Server) queryStatsStage(spec bson.Doc) ([]bson.Doc, error) {
	hide, err := readTransform(spec.Lookup("transformIdentifiers"))
	if err != nil {
		return nil, mongoerr.From(err).Early()
	}
	now := clock.Millis(s.Clock)
	entries := s.queryStats.all()
	docs := make([]bson.Doc, 0, len(entries))
	for i := range entries {
		e := &entries[i]
		key := e.key
		if hide != nil {
			key = hide.key(key)
		}
		b := bson.Build().Document("key", key).String("keyHash", e.hash).String("queryShapeHash", e.shape)
		b.Object("metrics").Int64("lastExecutionMicros", e.last).Int64("execCount", e.count)
		e.total.append(b, "totalExecMicros")
		e.begun.append(b, "firstResponseExecMicros")
		e.returned.append(b, "docsReturned")
		e.keys.append(b, "keysExamined")
		e.docs.append(b, "docsExamined")
		e.sorts.append(b, "hasSortStage")
		e.spills.append(b, "usedDisk")
		b.Date("firstSeenTimestamp", e.first).Date("latestSeenTimestamp", e.latest).End()
		docs = append(docs, b.Timestamp("asOf", uint32(now/1000), 0).Doc())
	}
	return docs, nil
}

// hiding replaces names by what only who has the key can tell them from.
type hiding struct{ key256 []byte }

func readTransform(v bson.Value) (*hiding, error) {
	if v.IsMissing() {
		return nil, nil
	}
	a := NewArgs("$queryStats.transformIdentifiers", v.Doc())
	a.Required("algorithm", "hmacKey")
	algorithm, _ := a.String("algorithm")
	key, _ := a.typed("hmacKey", bson.TypeBinary)
	if err := a.Done(); err != nil {
		return nil, err
	}
	if algorithm != "hmac-sha-256" {
		return nil, mongoerr.New(mongoerr.BadValue, "Enumeration value '%s' for field '$queryStats.transformIdentifiers.algorithm' is not a valid value.", algorithm)
	}
	subtype, data := key.Binary()
	if subtype != 8 || len(data) < 32 {
		return nil, mongoerr.New(mongoerr.FailedToParse, "The 'hmacKey' parameter of the $queryStats stage must be BinData of subtype Sensitive and of at least 32 bytes")
	}
	return &hiding{data}, nil
}

func (h *hiding) name(text string) string {
	mac := hmac.New(sha256.New, h.key256)
	mac.Write([]byte(text))
	return base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// path hides the parts of a dotted path.
func (h *hiding) path(path string) string {
	parts := strings.Split(path, ".")
	for i, part := range parts {
		parts[i] = h.name(part)
	}
	return strings.Join(parts, ".")
}

// key hides the names in the key of an entry: those of its namespace, and of all fields in its shape.
func (h *hiding) key(key bson.Doc) bson.Doc {
	b := bson.Build()
	for it := key.Iter(); it.Next(); {
		switch it.Key() {
		case "queryShape":
		case "hint":
			b.Value(it.Key(), h.value(it.Value()))
			continue
		default:
			b.Value(it.Key(), it.Value())
			continue
		}
		b.Object("queryShape")
		for f := it.Value().Doc().Iter(); f.Next(); {
			switch f.Key() {
			case "cmdNs":
				ns := f.Value().Doc()
				b.Object("cmdNs").String("db", h.name(ns.Lookup("db").Text())).String("coll", h.name(ns.Lookup("coll").Text())).End()
			case "command", "collation":
				b.Value(f.Key(), f.Value())
			case "key":
				b.String("key", h.path(f.Value().Text()))
			default:
				b.Value(f.Key(), h.value(f.Value()))
			}
		}
		b.End()
	}
	return b.Doc()
}

// value hides the names of fields in a part of a shape. Operators and what stands for values stay.
func (h *hiding) value(v bson.Value) bson.Value {
	switch v.Type {
	case bson.TypeObject:
		b := bson.Build()
		for it := v.Doc().Iter(); it.Next(); {
			name := it.Key()
			if !strings.HasPrefix(name, "$") {
				name = h.path(name)
			}
			b.Value(name, h.value(it.Value()))
		}
		return b.Doc().Value()
	case bson.TypeArray:
		var out []bson.Value
		for it := v.Doc().Iter(); it.Next(); {
			out = append(out, h.value(it.Value()))
		}
		return bson.ArrayOf(out...)
	case bson.TypeString:
		text := v.Str()
		switch {
		case strings.HasPrefix(text, "?"), strings.HasPrefix(text, "$$"):
		case strings.HasPrefix(text, "$"):
			return bson.String("$" + h.path(text[1:]))
		default:
			return bson.String(h.name(text))
		}
	}
	return v
}
