package server

import (
	"errors"
	"fmt"
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/wire"
)

const (
	upgradeHint = "The client driver may require an upgrade. " +
		"For more details see https://dochub.mongodb.org/core/legacy-opcode-removal"

	codeOpQueryGone mongoerr.Code = 5739101
)

// errCommand says that an OP_QUERY is a command, which is handled like any other.
var errCommand = errors.New("legacy command")

// answerLegacy refuses what left the protocol with MongoDB 5.1, but for commands: they are made requests and left to the
// handler, errCommand. Exporters and dashboards of old drivers need no more.
func (s *Server) answerLegacy(c *Conn, m *wire.Message, out wire.Outgoing) error {
	if m.OpCode != wire.OpQuery && m.OpCode != wire.OpGetMore {
		return fmt.Errorf("%s is no longer supported. %s", m.OpCode, upgradeHint)
	}
	database, isCommand := strings.CutSuffix(m.Namespace, ".$cmd")
	if m.OpCode == wire.OpGetMore || !isCommand {
		out.OpCode, out.QueryFailed = wire.OpReply, true
		out.Body = bson.Build().String("$err", m.OpCode.String()+" is no longer supported. "+upgradeHint).
			Int32("code", int32(codeOpQueryGone)).Double("ok", 0).Doc()
		return s.write(c, out)
	}
	c.req.Database, c.req.Body = database, unwrapQuery(m.Body)
	return errCommand
}

// unwrapQuery takes the command out of {$query: {…}, $readPreference: {…}}.
func unwrapQuery(body bson.Doc) bson.Doc {
	if key := body.FirstKey(); key == "$query" || key == "query" {
		if v := body.Lookup(key); v.Type == bson.TypeObject {
			return v.Doc()
		}
	}
	return body
}
