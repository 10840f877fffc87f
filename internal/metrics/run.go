package metrics

import (
	"context"
	"fmt"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/command"
)

// run runs a command in the server's own name.
func run(ctx context.Context, c Commands, doc bson.Doc) (bson.Doc, error) {
	return runOn(ctx, c, c.Inside(), doc)
}

// runOn runs a command on a connection.
func runOn(ctx context.Context, c Commands, conn *command.Conn, doc bson.Doc) (bson.Doc, error) {
	reply := c.Handle(ctx, conn, command.Request{Body: doc}).Body
	if ok := reply.Lookup("ok"); reply == nil || !ok.IsNumber() || ok.AsDouble() != 1 {
		why := "it ended without a reply"
		if text := reply.Lookup("errmsg"); text.Type == bson.TypeString {
			why = text.Str()
		}
		return nil, fmt.Errorf("%s: %s", doc.FirstKey(), why)
	}
	return reply, nil
}

// statusCommand is what figures are made of.
func statusCommand() bson.Doc {
	return bson.Build().Int32("serverStatus", 1).String("$db", "admin").Doc()
}
