package exec

import (
	"context"
	"slices"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/collation"
	"github.com/ebbdb/ebb/internal/expr"
	"github.com/ebbdb/ebb/internal/memory"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/pipeline"
)

const (
	// DefaultMaxMemory is how many bytes a blocking stage keeps in memory before it spills or fails.
	DefaultMaxMemory = 100 << 20
	// MaxDocumentSize is the size that no document of a pipeline's result may exceed: 16 MiB and what the server allows
	// itself on top.
	MaxDocumentSize = bson.MaxInternalSize
)

// Op is what one operation carries through all of its iterators, from its command to its last getMore. It is used by one
// goroutine at a time.
//
// Env is shared by all stages of one pipeline, so what lies in it is good within one step of one stage only: a stage that
// pulls from its source, or returns, has copied what it keeps. The pipelines inside of stages run in Ops of their own (Sub),
// whose Envs see the variables around them.
type Op struct {
	// DB is the database that the command ran against.
	DB string
	// Now is the operation's one time, in milliseconds since the epoch.
	Now int64
	// MaxMemory bounds each blocking stage, 0 means DefaultMaxMemory; AllowDiskUse lets it go on in files under TempDir.
	MaxMemory    int64
	AllowDiskUse bool
	TempDir      string
	// UsedDisk is set when some stage spilled.
	UsedDisk bool
	// Parser is the language as the operation speaks it, with its collation and time.
	Parser *pipeline.Parser
	// Env evaluates expressions; Build makes it when it is nil.
	Env *expr.Env
	// Catalog is how stages reach other collections and the server; nil where a pipeline cannot have such stages.
	Catalog Catalog
	// Explain has Build count what each stage does; see Counted.
	Explain bool
	// Counts are the counters of the stages built so far, in order, when Explain is set.
	Counts []*Counted
	// SortKeys has each $sort tell what it sorted the document by as metadata.
	SortKeys bool
	// TextScores has a pipeline that searches text find scores even where it does not read them itself.
	TextScores bool
	// Meta is the metadata of the document at hand. Leaves set it with each document; stages that hold documents back keep it.
	Meta Metadata

	// Memory is the operation's share of the server's memory; nil takes what it likes.
	Memory *memory.Account

	// draws says that the documents of this Sub's pipeline are others each time it runs; see Draws.
	draws     bool
	changes   *Changes // the leaf of a change stream; nil otherwise
	parent    *Op
	shared    *shared // what its stages hold, and those of others beside it; nil where there are none
	subs      []*Op
	leaves    []Parker
	shrinkers []Shrinker
	carried   int             // bytes of the largest document on its way so far
	ctx       context.Context // of the call under way, for the loops inside of expressions
	own       turns           // of an operation that is no Sub
}

// turns are the operation's. All that it works at takes the same ones, for it is one that needs a processor: stages that
// were admitted one by one would wait for each other.
func (op *Op) turns() *turns {
	for op.parent != nil {
		op = op.parent
	}
	return &op.own
}

// Catalog is what stages need of the server. Its errors are MongoDB's.
type Catalog interface {
	// Open runs p over the collection or view ns in op; a collection that does not exist is empty. Without ns.Coll, p brings
	// its own documents.
	Open(ctx context.Context, op *Op, ns namespace.NS, p *pipeline.Pipeline) (Iterator, error)
	// Indexed says whether an index of ns can find documents by the path alone.
	Indexed(ctx context.Context, op *Op, ns namespace.NS, path string) bool
	// Server gives what a stage about the server is asked for.
	Server(ctx context.Context, op *Op, ns namespace.NS, stage *pipeline.Server) (Iterator, error)
	// Out starts the collection that replaces stage.To when its Writer finishes.
	Out(ctx context.Context, op *Op, stage *pipeline.Out) (Writer, error)
	// Merge writes each document into stage.Into. It checks for the unique index of stage.On (51183) and uses a Merging for
	// what becomes of the documents.
	Merge(ctx context.Context, op *Op, stage *pipeline.Merge) (Writer, error)
}

// Writer takes the documents of $out or $merge. Exactly one of Finish and Abort is called at the end.
type Writer interface {
	Write(ctx context.Context, doc bson.Doc) error
	Finish(ctx context.Context) error
	Abort(ctx context.Context)
}

// Leaf enters a leaf, to be parked with the operation.
func (op *Op) Leaf(p Parker) { op.leaves = append(op.leaves, p) }

// Park lets every leaf let go of the storage engine. The operation's cursor calls it between batches.
func (op *Op) Park() {
	for _, p := range op.leaves {
		p.Park()
	}
	for _, s := range op.subs {
		s.Park()
	}
}

// Sub is an Op for a pipeline inside of a stage. Its Env starts with the variables of op's. Drop ends it.
func (op *Op) Sub() *Op {
	sub := *op
	sub.parent, sub.subs, sub.leaves, sub.shrinkers, sub.Counts, sub.Meta = op, nil, nil, nil, nil, Metadata{}
	sub.TextScores, sub.draws = false, false
	sub.Env = op.newEnv()
	op.Env.CopyVariables(sub.Env)
	op.subs = append(op.subs, &sub)
	return &sub
}

// Inside says that op is a Sub's.
func (op *Op) Inside() bool { return op.parent != nil }

// Draws notes that the pipeline of op draws random numbers where its stages do not show it, in a view. So do those around it.
func (op *Op) Draws() {
	for ; op != nil; op = op.parent {
		op.draws = true
	}
}

// Drop forgets a Sub whose iterators are closed.
func (op *Op) Drop(sub *Op) {
	op.UsedDisk = op.UsedDisk || sub.UsedDisk
	if i := slices.Index(op.subs, sub); i >= 0 {
		op.subs = slices.Delete(op.subs, i, i+1)
	}
}

// end closes it, which is all that was opened in op, and forgets its leaves and what held memory.
func (op *Op) end(it Iterator) error {
	err := it.Close()
	op.leaves, op.shrinkers = nil, nil
	return err
}

func (op *Op) newEnv() *expr.Env {
	env := op.Parser.Exprs.NewEnv()
	env.Interrupt = op.Interrupted
	return env
}

// Interrupted is the reason why the call under way has to end, or nil: the Interrupt of every Env.
func (op *Op) Interrupted() error {
	for op.parent != nil {
		op = op.parent
	}
	if op.ctx == nil {
		return nil
	}
	return interrupted(op.ctx)
}

// SortMemory is how many bytes a sort may hold.
func (op *Op) SortMemory() int64 { return op.maxMemory() }

func (op *Op) maxMemory() int64 {
	if op.MaxMemory <= 0 {
		return DefaultMaxMemory
	}
	return op.MaxMemory
}

// collator compares the operation's strings, nil by bytes.
func (op *Op) collator() bson.Collator {
	if c := op.collation(); c != nil {
		return c
	}
	return nil
}

// keys hashes the operation's strings.
func (op *Op) keys() bson.StringKeyer {
	if c := op.collation(); c != nil {
		return c
	}
	return nil
}

func (op *Op) collation() *collation.Collation { return op.Parser.Collation }

// interrupted is the reason why ctx ended, or nil.
func interrupted(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	default:
		return nil
	}
}
