package command

import (
	"math"

	"github.com/ebbdb/ebb/internal/auth/privilege"
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/host"
	"github.com/ebbdb/ebb/internal/namespace"
)

func diagnosticDataCommands() []*Command {
	return []*Command{
		{Name: "getDiagnosticData", AdminOnly: true, Doc: "Tells at once what several commands tell about the server, for those who record it.", Quiet: true,
			Needs: Needs{OnCluster: actions(privilege.ServerStatus, privilege.ReplSetGetStatus, privilege.ConnPoolStats), Also: needsOplogStats}, Run: getDiagnosticData},
	}
}

// oplogStats is what getDiagnosticData tells the oplog's figures under.
const oplogStats = "local.oplog.rs.stats"

func needsOplogStats(op *Op) error {
	if op.May(privilege.Namespace(namespace.NS{DB: "local", Coll: "oplog.rs"}), privilege.CollStats) {
		return nil
	}
	return op.refusal()
}

// getDiagnosticData answers what mongod gathers each second, as it is now. Programs that watch a MongoDB read it by the names of fields.
func getDiagnosticData(op *Op) (bson.Doc, error) {
	if err := op.noArguments(); err != nil {
		return nil, err
	}
	b := bson.Build().Object("data").Date("start", op.Clock.Now().UnixMilli())
	op.diagnose(b, "serverStatus", "admin", bson.Build().Int32("serverStatus", 1).Doc())
	if op.Replica != nil {
		op.diagnose(b, "replSetGetStatus", "admin", bson.Build().Int32("replSetGetStatus", 1).Doc())
		op.diagnose(b, oplogStats, "local", bson.Build().String("collStats", "oplog.rs").Doc())
	}
	op.diagnoseMachine(b)
	return b.Date("end", op.Clock.Now().UnixMilli()).End().Doc(), nil
}

// diagnose appends the reply of a command of its own, and when it was begun and over. What goes wrong is a part of the reply.
func (op *Op) diagnose(b *bson.Builder, name, db string, body bson.Doc) {
	b.Object(name).Date("start", op.Clock.Now().UnixMilli())
	reply := op.Server.Handle(op.Ctx, op.Inside(), Request{Body: bson.Build().Fields(body).String("$db", db).Doc()}).Body
	for it := reply.Iter(); it.Next(); {
		switch it.Key() {
		case "$clusterTime", "operationTime": // of the reply
		default:
			b.Value(it.Key(), it.Value())
		}
	}
	b.Date("end", op.Clock.Now().UnixMilli()).End()
}

func (op *Op) diagnoseMachine(b *bson.Builder) {
	b.Object("systemMetrics").Date("start", op.Clock.Now().UnixMilli())
	system := host.Measure()
	for _, part := range []struct {
		name    string
		figures []host.Figure
	}{{"cpu", system.CPU}, {"memory", system.Memory}} {
		b.Object(part.name)
		for _, f := range part.figures {
			b.Int64(f.Name, int64(math.Round(f.Value)))
		}
		b.End()
	}
	b.Date("end", op.Clock.Now().UnixMilli()).End()
}
