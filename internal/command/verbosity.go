package command

import (
	"math"
	"strings"
	"sync"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/parameter"
)

// inherit is the verbosity of a component that goes by the one above it.
const inherit = -1

// maxVerbosity is the most that the log can say.
const maxVerbosity = 5

// component is one part of the server in logComponentVerbosity, with the parts below it.
type component struct {
	name  string
	level int32
	parts []*component
}

// components is MongoDB's tree.
func components() *component {
	leaves := func(names string) (parts []*component) {
		for name := range strings.FieldsSeq(names) {
			parts = append(parts, &component{name: name, level: inherit})
		}
		return parts
	}
	root := &component{parts: leaves("accessControl assert command control executor geo globalIndex index network processHealth query " +
		"queryStats replication sharding storage streams write ftdc transaction tenantMigration test resourceConsumption")}
	for name, below := range map[string]string{
		"network":     "asio bridge connectionPool",
		"query":       "optimizer rejected",
		"replication": "election heartbeats initialSync rollback",
		"sharding":    "migration migrationPerf rangeDeleter reshard shardingCatalogRefresh",
		"storage":     "journal recovery",
	} {
		root.part(name).parts = leaves(below)
	}
	return root
}

func (c *component) part(name string) *component {
	for _, p := range c.parts {
		if p.name == name {
			return p
		}
	}
	return nil
}

func (c *component) append(b *bson.Builder) *bson.Builder {
	b.Int32("verbosity", c.level)
	for _, p := range c.parts {
		p.append(b.Object(p.name)).End()
	}
	return b
}

// plan reads what d says of c into the levels to be set, so that nothing is set when something is wrong.
func (c *component) plan(d bson.Doc, levels map[*component]int32) error {
	for it := d.Iter(); it.Next(); {
		v := it.Value()
		part := c.part(it.Key())
		switch {
		case it.Key() == "verbosity":
			part = c
		case part == nil:
			return mongoerr.New(mongoerr.BadValue, "Invalid component name for logComponentVerbosity: %s", it.Key())
		case v.Type == bson.TypeObject:
			if err := part.plan(v.Doc(), levels); err != nil {
				return err
			}
			continue
		}
		n, exact := v.AsInt64()
		if !v.IsNumber() || !exact && v.IsNaN() || n < math.MinInt32 || n > math.MaxInt32 {
			return mongoerr.New(mongoerr.BadValue, "Expected verbosity of %s to be a number, but it is %s", it.Key(), v)
		}
		levels[part] = max(int32(v.TruncInt64()), inherit)
	}
	return nil
}

// addVerbosity adds logLevel and logComponentVerbosity. Ebb logs on one level, that of the tree's top, which tell is told;
// the levels of components are kept for those who set them.
func addVerbosity(r *parameter.Registry, tell func(level int)) {
	if tell == nil {
		tell = func(int) {}
	}
	var mu sync.Mutex // guards root
	root := components()
	set := func(levels map[*component]int32) {
		mu.Lock()
		defer mu.Unlock()
		for c, level := range levels {
			c.level = level
		}
		root.level = max(root.level, 0)
		tell(int(min(root.level, maxVerbosity)))
	}
	setTop := func(n int64) error {
		if n < 0 || n > maxVerbosity {
			return mongoerr.New(mongoerr.BadValue, "Invalid value for logLevel: %d is not between 0 and %d", n, maxVerbosity)
		}
		set(map[*component]int32{root: int32(n)})
		return nil
	}
	r.Add(&parameter.Parameter{Name: "logLevel", When: parameter.Both,
		Get: func() bson.Value {
			mu.Lock()
			defer mu.Unlock()
			return bson.Int32(root.level)
		},
		Set: func(v bson.Value) error {
			n, err := parameter.AsInt("logLevel", v)
			if err != nil {
				return err
			}
			return setTop(n)
		},
		Parse: func(text string) error {
			n, err := parameter.ParseInt("logLevel", text)
			if err != nil {
				return err
			}
			return setTop(n)
		}})
	r.Add(&parameter.Parameter{Name: "logComponentVerbosity", When: parameter.Both,
		Get: func() bson.Value {
			mu.Lock()
			defer mu.Unlock()
			return root.append(bson.Build()).Doc().Value()
		},
		Set: func(v bson.Value) error {
			if v.Type != bson.TypeObject {
				return mongoerr.New(mongoerr.TypeMismatch, "log component verbosity is not a BSON object: %s", v)
			}
			levels := map[*component]int32{}
			if err := root.plan(v.Doc(), levels); err != nil {
				return err
			}
			set(levels)
			return nil
		},
		Parse: func(text string) error {
			d, err := bson.ParseDoc(text)
			if err != nil {
				return mongoerr.New(mongoerr.BadValue, "logComponentVerbosity is no document: %s", text)
			}
			levels := map[*component]int32{}
			if err := root.plan(d, levels); err != nil {
				return err
			}
			set(levels)
			return nil
		}})
}
