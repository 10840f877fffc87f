package command

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/ebbdb/ebb/internal/auth/privilege"
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

func clusterParameterCommands() []*Command {
	return []*Command{
		{Name: "getClusterParameter", Needs: Needs{OnCluster: actions(privilege.GetClusterParameter)}, Doc: "Shows parameters of the whole cluster.", AdminOnly: true, Run: getClusterParameter},
		{Name: "setClusterParameter", Needs: Needs{OnCluster: actions(privilege.SetClusterParameter)}, Doc: "Changes a parameter of the whole cluster.", AdminOnly: true, Run: setClusterParameter},
	}
}

// clusterParameter is one row: a document with typed fields.
type clusterParameter struct {
	name   string
	fields []clusterField
	// parse reads the value of a parameter whose fields are no plain ones; nil for the others.
	parse func(bson.Doc) (bson.Doc, error)
}

// clusterField is one field of a row's document: a bool or a whole number, by what its default is.
type clusterField struct {
	name string
	def  bson.Value
	min  int64
}

// clusterTable is the parameters there are, by name.
func clusterTable() []clusterParameter {
	return []clusterParameter{
		{name: "changeStreamOptions", parse: parseChangeStreamOptions,
			fields: []clusterField{{name: "preAndPostImages", def: bson.Build().String("expireAfterSeconds", "off").Doc().Value()}}},
		{name: "changeStreams", fields: []clusterField{{"expireAfterSeconds", bson.Int64(3600), 1}}},
		{name: "defaultMaxTimeMS", fields: []clusterField{{"readOperations", bson.Int64(0), 0}}},
		{name: "fleCompactionOptions", fields: []clusterField{{"maxCompactionSize", bson.Int32(256 << 20), 1},
			{"maxAnchorCompactionSize", bson.Int32(256 << 20), 1}, {"maxESCEntriesPerCompactionDelete", bson.Int32(350_000), 1}}},
		{name: "fleDisableSubstringPreviewParameterLimits", fields: []clusterField{{"shouldOverride", bson.False, 0}}},
		{name: "pauseMigrationsDuringMultiUpdates", fields: []clusterField{{"enabled", bson.False, 0}}},
	}
}

// clusterParameters is what was set; stored_settings.go tells where it is written down.
type clusterParameters struct {
	mu struct {
		sync.Mutex
		set map[string]clusterValue
		// seconds and increment are the latest clusterParameterTime given.
		seconds, increment uint32
		readLimit          time.Duration
	}
}

type clusterValue struct {
	doc                bson.Doc
	seconds, increment uint32
}

func unknownClusterParameter(name string) error {
	return mongoerr.New(mongoerr.NoSuchKey, "Unknown server parameter: %s", name)
}

func clusterRow(name string) (clusterParameter, error) {
	for _, p := range clusterTable() {
		if p.name == name {
			return p, nil
		}
	}
	return clusterParameter{}, unknownClusterParameter(name)
}

func getClusterParameter(op *Op) (bson.Doc, error) {
	rows, err := wantedClusterParameters(op.Args.Value(op.Name()), op.Args)
	if err != nil {
		return nil, err
	}
	names := make([]string, 0, len(rows))
	for _, p := range rows {
		names = append(names, p.name)
	}
	op.tellResult("getClusterParameter", bson.Build().Strings("requestedClusterServerParameters", names).Doc(), 0, false)
	b := bson.Build().Array("clusterParameters")
	for i, p := range rows {
		b.Document(bson.IndexKey(i), op.cluster.show(p))
	}
	return b.End().Doc(), nil
}

func wantedClusterParameters(want bson.Value, a *Args) ([]clusterParameter, error) {
	switch want.Type {
	case bson.TypeString:
		if want.Str() == "*" {
			return clusterTable(), nil
		}
		p, err := clusterRow(want.Str())
		return []clusterParameter{p}, err
	case bson.TypeArray:
	default:
		return nil, a.wrongType("getClusterParameter", want.Type, []bson.Type{bson.TypeArray, bson.TypeString})
	}
	if want.Doc().IsEmpty() {
		return nil, mongoerr.New(mongoerr.BadValue, "Must supply at least one cluster server parameter name to getClusterParameter")
	}
	var rows []clusterParameter
	seen := map[string]bool{}
	for it := want.Doc().Iter(); it.Next(); {
		if it.Value().Type != bson.TypeString {
			return nil, a.wrongType("getClusterParameter."+it.Key(), it.Value().Type, []bson.Type{bson.TypeString})
		}
		p, err := clusterRow(it.Value().Str())
		if err != nil {
			return nil, err
		}
		if !seen[p.name] {
			rows = append(rows, p)
		}
		seen[p.name] = true
	}
	return rows, nil
}

func (c *clusterParameters) show(p clusterParameter) bson.Doc {
	c.mu.Lock()
	v, set := c.mu.set[p.name]
	c.mu.Unlock()
	if !set {
		v.doc = p.defaults()
	}
	return p.show(v)
}

func (p clusterParameter) show(v clusterValue) bson.Doc {
	return bson.Build().String("_id", p.name).Timestamp("clusterParameterTime", v.seconds, v.increment).Fields(v.doc).Doc()
}

func (p clusterParameter) defaults() bson.Doc {
	b := bson.Build()
	for _, f := range p.fields {
		b.Value(f.name, f.def)
	}
	return b.Doc()
}

func setClusterParameter(op *Op) (bson.Doc, error) {
	a := op.Args
	a.Required(op.Name())
	want := a.Doc(op.Name())
	if err := a.Err(); err != nil {
		return nil, err
	}
	if want.Count() > 1 {
		return nil, mongoerr.New(mongoerr.InvalidOptions, "setClusterParameter only supports setting exactly one parameter")
	}
	p, err := clusterRow(want.FirstKey())
	if err != nil {
		return nil, err
	}
	v := want.Lookup(p.name)
	if v.Type != bson.TypeObject {
		return nil, mongoerr.New(mongoerr.BadValue, "Cluster parameter value must be a document, but %s is of type %s", p.name, v.Type)
	}
	doc, err := p.read(v.Doc())
	if err != nil {
		return nil, err
	}
	var was, now bson.Doc
	err = op.alter(func(ctx context.Context, s *Server) error {
		next := s.cluster.next(doc, op.Now)
		was, now = s.cluster.show(p), p.show(next)
		err := op.storeParameter(ctx, p.name, next)
		if err == nil {
			s.cluster.put(p.name, next)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	op.tell("setClusterParameter", bson.Build().Document("originalClusterServerParameter", was).Document("updatedClusterServerParameter", now).Doc())
	return bson.EmptyDoc, nil
}

// read is the whole value that v makes: what it leaves out, or says null for, is the default.
func (p clusterParameter) read(v bson.Doc) (bson.Doc, error) {
	for it := v.Iter(); it.Next(); {
		if strings.HasPrefix(it.Key(), "$") {
			return nil, mongoerr.New(mongoerr.DollarPrefixedFieldName, "The dollar ($) prefixed field '%s' in '%s' is not valid for storage.", it.Key(), it.Key())
		}
	}
	if p.parse != nil {
		return p.parse(v)
	}
	a := NewArgs(p.name, v)
	b := bson.Build()
	for _, f := range p.fields {
		f.read(a, b)
	}
	return b.Doc(), a.Done()
}

func (f clusterField) read(a *Args, b *bson.Builder) {
	if !a.Has(f.name) {
		a.Ignore(f.name)
		b.Value(f.name, f.def)
		return
	}
	if f.def.Type == bson.TypeBool {
		b.Bool(f.name, a.Bool(f.name, false))
		return
	}
	n, _ := a.Int(f.name)
	if n < f.min && a.Err() == nil {
		a.Fail(mongoerr.New(mongoerr.BadValue, "Invalid value for parameter %s: %d is not greater than or equal to %d", f.name, n, f.min))
	}
	if f.def.Type == bson.TypeInt64 {
		b.Int64(f.name, n)
	} else {
		b.Int32(f.name, int32(n))
	}
}

// parseChangeStreamOptions reads {preAndPostImages: {expireAfterSeconds: "off" or a number}}.
func parseChangeStreamOptions(v bson.Doc) (bson.Doc, error) {
	images := v.Lookup("preAndPostImages")
	if images.IsMissing() {
		return nil, notOptions("preAndPostImages", "missing but a required field")
	}
	if images.Type != bson.TypeObject || images.Doc().Lookup("expireAfterSeconds").IsMissing() {
		return nil, notOptions("expireAfterSeconds", "missing but a required field")
	}
	if name := otherField(v, "preAndPostImages"); name != "" {
		return nil, notOptions(name, "an unknown field.")
	}
	if name := otherField(images.Doc(), "expireAfterSeconds"); name != "" {
		return nil, notOptions("preAndPostImages."+name, "an unknown field.")
	}
	seconds, err := imagesExpireAfter(images.Doc().Lookup("expireAfterSeconds"))
	return bson.Build().Object("preAndPostImages").Value("expireAfterSeconds", seconds).End().Doc(), err
}

// imagesExpireAfter reads "off" or a number of seconds.
func imagesExpireAfter(v bson.Value) (bson.Value, error) {
	switch {
	case v.IsNullish():
		return bson.String("off"), nil
	case v.Type == bson.TypeString && v.Str() == "off":
		return v, nil
	case v.Type == bson.TypeString:
		return v, mongoerr.New(mongoerr.BadValue, "Non-numeric value of 'expireAfterSeconds' should be 'off'")
	case !v.IsNumber():
		return v, notOptions("preAndPostImages.expireAfterSeconds",
			fmt.Sprintf("the wrong type '%s', expected types '[string, long, int, decimal, double]'", v.Type))
	case v.TruncInt64() <= 0:
		return v, mongoerr.New(mongoerr.BadValue, "Numeric value of 'expireAfterSeconds' should be positive")
	}
	return bson.Int64(v.TruncInt64()), nil
}

// notOptions says what is wrong with a field of changeStreamOptions.
func notOptions(field, what string) error {
	return mongoerr.New(mongoerr.BadValue, "Failed parsing new changeStreamOptions valueBSON field 'changeStreamOptions.%s' is %s", field, what)
}

// otherField is the first field of doc that is not called known; "" where there is none.
func otherField(doc bson.Doc, known string) string {
	for it := doc.Iter(); it.Next(); {
		if it.Key() != known {
			return it.Key()
		}
	}
	return ""
}

// next is doc with a time later than any before.
func (c *clusterParameters) next(doc bson.Doc, nowMillis int64) clusterValue {
	c.mu.Lock()
	defer c.mu.Unlock()
	if seconds := uint32(nowMillis / 1000); seconds > c.mu.seconds {
		c.mu.seconds, c.mu.increment = seconds, 0
	}
	c.mu.increment++
	return clusterValue{doc, c.mu.seconds, c.mu.increment}
}

// restore takes over what was kept with its time; a nil doc is kept elsewhere, and only its time counts.
func (c *clusterParameters) restore(name string, doc bson.Doc, at bson.Value) {
	v := clusterValue{doc: doc}
	if at.Type == bson.TypeTimestamp {
		v.seconds, v.increment = at.Timestamp()
	}
	c.mu.Lock()
	if v.seconds > c.mu.seconds || v.seconds == c.mu.seconds && v.increment > c.mu.increment {
		c.mu.seconds, c.mu.increment = v.seconds, v.increment
	}
	c.mu.Unlock()
	if doc != nil {
		c.put(name, v)
	}
}

func (c *clusterParameters) put(name string, v clusterValue) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.set == nil {
		c.mu.set = map[string]clusterValue{}
	}
	c.mu.set[name] = v
	if name == "defaultMaxTimeMS" {
		c.mu.readLimit = time.Duration(v.doc.Lookup("readOperations").Int64()) * time.Millisecond
	}
}

// maxTime is the time limit of a command that says none itself.
func (c *clusterParameters) maxTime(command *Command) time.Duration {
	switch command.Name {
	case "find", "aggregate", "count", "distinct":
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.mu.readLimit
	}
	return 0
}
