package command

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/operation"
	"github.com/ebbdb/ebb/internal/storage/build"
)

// indexBuilder is what MongoDB calls the threads that build indexes.
const indexBuilder = "IndexBuildsCoordinatorMongod-%d"

// builders numbers the threads.
type builders struct{ next atomic.Int64 }

// startBuilder makes a context for createIndexes, and what is to be called with the build that may come of it: that shows
// it as an operation of its own, as in MongoDB, which ends the build when it is killed. done must be called at the end.
func (op *Op) startBuilder() (ctx context.Context, seen func(*build.Underway), done func(error)) {
	ctx, end := context.WithCancelCause(op.patiently())
	var running *operation.Operation
	audited := func(error) {}
	seen = func(b *build.Underway) {
		audited = op.beginBuild(b)
		client := &operation.Client{Desc: fmt.Sprintf(indexBuilder, op.builders.next.Add(1)-1)}
		running = &operation.Operation{Client: client, Kind: "command", NS: b.NS.String(), Command: op.Args.Document().Clone(), Progress: b.Progress}
		killed := op.Ops.Start(ctx, running)
		context.AfterFunc(killed, func() { end(context.Cause(killed)) })
		b.Operation.Store(running.ID)
	}
	return ctx, seen, func(err error) {
		audited(err)
		if running != nil {
			op.Ops.Finish(running)
		}
		end(nil)
	}
}

// describeBuild is an index that is being built, as listIndexes shows it with includeIndexBuildInfo.
func describeBuild(spec bson.Doc, b *build.Underway) bson.Doc {
	return bson.Build().Document("spec", spec).Object("indexBuildInfo").Binary("buildUUID", 4, b.UUID[:]).
		String("method", "hybrid").Int32("phase", int32(b.Phase())).String("phaseStr", b.Phase().String()).
		Int64("opid", b.Operation.Load()).Bool("resumable", false).
		Object("replicationState").String("state", "In progress").End().End().Doc()
}

// buildingRows describes the indexes that are being built: bare, with their build's UUID, or with all there is to say.
func buildingRows(builds []*build.Underway, uuids, info bool) (rows []bson.Doc) {
	for _, b := range builds {
		for _, d := range b.Definitions {
			switch {
			case info:
				rows = append(rows, describeBuild(d.Spec, b))
			case uuids:
				rows = append(rows, bson.Build().Document("spec", d.Spec).Binary("buildUUID", 4, b.UUID[:]).Doc())
			default:
				rows = append(rows, d.Spec)
			}
		}
	}
	return rows
}
