package exec

import (
	"context"

	"github.com/ebbdb/ebb/internal/bson"
)

const (
	// DefaultMaxMemory is how many bytes a blocking stage keeps in memory before it spills or fails.
	DefaultMaxMemory = 100 << 20
	// MaxDocumentSize is the size that no document of a pipeline's result may exceed.
	MaxDocumentSize = 16 << 20
)

// Op is what one operation carries through all of its iterators, from its command to its last getMore. It is used by one
// goroutine at a time.
type Op struct {
	// DB is the database that the command ran against.
	DB string
	// Now is the operation's one time, in milliseconds since the epoch.
	Now int64
	// MaxMemory bounds each blocking stage; AllowDiskUse lets it go on in files under TempDir past that.
	MaxMemory    int64
	AllowDiskUse bool
	TempDir      string
	// UsedDisk is set when some stage spilled.
	UsedDisk bool
	// Catalog is how stages reach other collections and the server; nil where a pipeline cannot have such stages.
	Catalog Catalog
	// Explain has Count wrap what Build makes.
	Explain bool

	leaves []Parker
}

// Catalog is what stages need of the server. Its errors are MongoDB's.
type Catalog interface {
}

// Leaf enters a leaf, to be parked with the operation.
func (op *Op) Leaf(p Parker) { op.leaves = append(op.leaves, p) }

// Park lets every leaf let go of the storage engine. The operation's cursor calls it between batches.
func (op *Op) Park() {
	for _, p := range op.leaves {
		p.Park()
	}
}

// interrupted is the reason why ctx ended, or nil.
func interrupted(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	default:
		return nil
	}
}

// Counters are what explain shows of one iterator.
type Counters struct {
	Works, Returned int64
	EOF             bool
}

// Counted counts what it passes through.
type Counted struct {
	Iterator
	Counters Counters
}

// Next implements Iterator.
func (c *Counted) Next(ctx context.Context) (bson.Doc, error) {
	c.Counters.Works++
	d, err := c.Iterator.Next(ctx)
	if d != nil {
		c.Counters.Returned++
	} else if err == nil {
		c.Counters.EOF = true
	}
	return d, err
}
