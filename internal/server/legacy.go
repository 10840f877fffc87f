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
	codeDBInQuery   mongoerr.Code = 40621

	// dbRoom is what a field $db takes beside its value.
	dbRoom = len("\x02$db\x00") + 4 + 1
)

// errCommand says that an OP_QUERY is a command, which is handled like any other.
var errCommand = errors.New("legacy command")

// answerLegacy refuses what left the protocol with MongoDB 5.1, but for commands: they are made requests of today's form, which name
// their database, and left to the handler, errCommand. Exporters and dashboards of old drivers need no more.
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
	body := unwrapQuery(m.Body)
	if !body.Lookup("$db").IsMissing() {
		return s.refuse(c, out, mongoerr.New(codeDBInQuery, "$db is not allowed in OP_QUERY requests"))
	}
	c.req.Body = bson.BuildOn(make([]byte, 0, len(body)+len(database)+dbRoom)).Fields(body).String("$db", database).Doc()
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
