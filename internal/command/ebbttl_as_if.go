package command

import (
	"slices"
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/storage/indexplan"
	"github.com/ebbdb/ebb/internal/ttl"
)

// supposedTTL is "asIf": a TTL that a forecast supposes. It is that of the index with the name, of a new one with the key, or the
// collection's own where there is neither.
type supposedTTL struct {
	name   string
	key    bson.Doc
	expire bson.Value // a number, or "off"
}

func readSupposed(a *Args) *supposedTTL {
	asked := a.sub("asIf")
	if asked == nil {
		return nil
	}
	s := &supposedTTL{}
	name, byName := asked.String("index")
	s.name = strings.Clone(name)
	s.key = asked.Doc("key")
	asked.Required("expireAfterSeconds")
	s.expire = asked.Value("expireAfterSeconds")
	isOff := s.expire.Type == bson.TypeString && s.expire.Str() == off
	switch {
	case byName && s.key != nil:
		asked.Fail(invalidOptions("'asIf' is about an index that is there, or about a key: not about both"))
	case !s.expire.IsMissing() && !s.expire.IsNumber() && !isOff:
		asked.Fail(mongoerr.New(mongoerr.TypeMismatch, "'asIf.expireAfterSeconds' must be a number or \"%s\"", off))
	case isOff && s.key != nil:
		asked.Fail(invalidOptions("'asIf' about a key needs a number of seconds"))
	}
	if err := asked.Done(); err != nil {
		a.Fail(err)
	}
	return s
}

// off stands for no TTL.
const off = "off"

// isAbout says whether a forecast is by the TTL that is supposed, or by what it is in truth.
func (s *supposedTTL) isAbout(f *ttl.Forecast) bool {
	return f.Index == s.name
}

// suppose is the collection as it would be with the TTL.
func (op *Op) suppose(c *catalog.Collection, s *supposedTTL) (*catalog.Collection, error) {
	if s.key != nil {
		if found := index.WithKey(c.Indexes, s.key); len(found) == 1 {
			s.name, s.key = found[0].Name, nil
		}
	}
	switch {
	case s.key != nil:
		return op.supposeIndex(c, s)
	case s.name == "":
		o := readOptions(c.Options.Doc)
		if err := op.setExpire(c, o, s.expire); err != nil {
			return nil, err
		}
		return c.WithOptions(catalog.ReadOptions(o.doc())), nil
	case s.expire.Type == bson.TypeString:
		d, err := indexNamed(c, s.name)
		if err != nil {
			return nil, err
		}
		return c.WithIndexes(slices.DeleteFunc(slices.Clone(c.Indexes), func(o *index.Definition) bool { return o == d })), nil
	}
	return op.withIndexChange(c, &indexChange{name: s.name, expire: s.expire, given: map[string]bool{"expireAfterSeconds": true}}, bson.Build())
}

func (op *Op) supposeIndex(c *catalog.Collection, s *supposedTTL) (*catalog.Collection, error) {
	if s.name = "asIf"; !s.key.IsEmpty() {
		s.name = s.key.FirstKey() + "_" + s.name
	}
	spec := bson.Build().Document("key", s.key).String("name", s.name).Value("expireAfterSeconds", s.expire).Doc()
	defs, err := op.parseIndexes(c, []bson.Doc{spec})
	if err != nil {
		return nil, err
	}
	plan, err := indexplan.Make(c, nil, defs)
	if err != nil {
		return nil, err
	}
	return plan.Next(c), nil
}
