package geo

import "github.com/ebbdb/ebb/internal/bson"

// edgesPerAsk is how many edges are compared with others between two questions whether somebody still wants to know.
const edgesPerAsk = 16

// Reader reads shapes for an operation that may end meanwhile. Ask, which may be nil, says so by an error; then what is being
// read is no shape, and what is being compared is in no relation. Who has set Ask must ask, too, before it believes that.
type Reader struct {
	Ask func() error
}

// ParseStored is the function of that name.
func (r Reader) ParseStored(v bson.Value) (*Geometry, error) { return r.parseStored(v) }

// ParseQuery is the function of that name.
func (r Reader) ParseQuery(v bson.Value) (*Geometry, error) { return r.parseQuery(v) }

// over says, for the n-th edge of several, whether to give up.
func (r Reader) over(n int) bool {
	return r.Ask != nil && n%edgesPerAsk == edgesPerAsk-1 && r.Ask() != nil
}
