package command

import (
	"context"
	"net"
	"strconv"
	"strings"

	"github.com/ebbdb/ebb/internal/auth"
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// Beside are the servers that read what this one works on (ReadBeside), each at an address. What they are doing currentOp shows here, under opids that say
// where, and killOp stops it.
type Beside interface {
	// Operations is what each of them is doing, as its Server.Operations says, by address. One that does not answer is left out.
	Operations(ctx context.Context, want bson.Doc) map[string][]bson.Doc
	// Kill stops an operation of one of them. Like killOp it says nothing of what there was to stop; an error: nobody has that address.
	Kill(ctx context.Context, address string, id int64) error
}

// encode is what other servers are asked for; transactions they have none.
func (want *inprog) encode() bson.Doc {
	b := bson.Build().Bool("idle", want.idle).Bool("cursors", want.cursors).Bool("truncate", want.truncate)
	if want.whose != nil && want.whose.user != nil {
		b.String("user", want.whose.user.Name.Name).String("db", want.whose.user.DB)
	}
	return b.Doc()
}

// Operations is what the server is doing, for the one that works on the data, whose currentOp wants to know.
func (s *Server) Operations(want bson.Doc) []bson.Doc {
	w := inprog{idle: want.Lookup("idle").Truthy(), cursors: want.Lookup("cursors").Truthy(), truncate: want.Lookup("truncate").Truthy()}
	if user, db := want.Lookup("user"), want.Lookup("db"); user.Type == bson.TypeString && db.Type == bson.TypeString {
		w.whose = &viewer{s, &auth.User{Name: auth.Name{Name: user.Str(), DB: db.Str()}}}
	}
	return s.operations(w)
}

// operationsBeside are those of the other servers.
func (s *Server) operationsBeside(ctx context.Context, want inprog) (rows []bson.Doc) {
	if s.Beside == nil {
		return nil
	}
	for address, docs := range s.Beside.Operations(ctx, want.encode()) {
		for _, d := range docs {
			rows = append(rows, atAddress(d, address))
		}
	}
	return rows
}

// atAddress is an operation of another server as it is shown here.
func atAddress(d bson.Doc, address string) bson.Doc {
	b := bson.Build()
	for it := d.Iter(); it.Next(); {
		switch {
		case it.Key() == "host":
			b.String("host", address)
		case it.Key() == "opid" && it.Value().IsNumber():
			b.String("opid", address+":"+strconv.FormatInt(it.Value().TruncInt64(), 10))
		default:
			b.Value(it.Key(), it.Value())
		}
	}
	return b.Doc()
}

// killBeside stops an operation that currentOp has shown of another server.
func (op *Op) killBeside(opid string) (bson.Doc, error) {
	invalid := mongoerr.New(28625, "The op argument to killOp must be of the format shardid:opid but found \"%s\"", opid)
	at := max(strings.LastIndexByte(opid, ':'), 0)
	address := opid[:at]
	id, err := strconv.ParseInt(strings.TrimPrefix(opid[at:], ":"), 10, 32)
	if _, _, bad := net.SplitHostPort(address); err != nil || bad != nil {
		return nil, invalid
	}
	op.Log.Info("Going to kill op", "opId", opid)
	if err := op.Beside.Kill(op.Ctx, address, id); err != nil {
		return nil, err
	}
	return bson.Build().String("info", "attempting to kill op").Doc(), nil
}

// KillOperation stops an operation here, for the server that works on the data.
func (s *Server) KillOperation(id int64) {
	s.Log.Info("Going to kill op", "opId", id)
	s.Ops.Kill(id)
}
