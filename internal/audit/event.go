package audit

import (
	"net"
	"path/filepath"
	"strconv"

	"github.com/ebbdb/ebb/internal/auth"
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// Event is one of what has happened.
type Event struct {
	// Type is what MongoDB calls atype: authenticate, createCollection …
	Type string
	// At is when, in milliseconds since the epoch.
	At int64
	// From is the connection that it came over; nil for what the server has done by itself.
	From *Client
	// Param tells what was done, and Result whether it was: 0, or the code of an error.
	Param  bson.Doc
	Result mongoerr.Code
	// Lasting is an event of something that lasts: it is on stable storage before somebody is told that it is done.
	Lasting bool
}

// Client is a connection, and whose it is.
type Client struct {
	UUID          [16]byte
	Local, Remote string
	// User is who has logged in; nil for nobody.
	User *auth.User
}

// Doc is the event in MongoDB's form.
func (e Event) Doc() bson.Doc {
	b := bson.Build().String("atype", e.Type).Date("ts", e.At)
	if e.From == nil {
		b.Object("local").Bool("isSystemUser", true).End().Object("remote").Bool("isSystemUser", true).End()
		return e.what(b.Array("users").End().Array("roles").End())
	}
	b.Binary("uuid", 4, e.From.UUID[:])
	b.Document("local", Endpoint(e.From.Local)).Document("remote", Endpoint(e.From.Remote)).Array("users")
	if u := e.From.User; u != nil {
		b.Object("0").String("user", u.Name.Name).String("db", u.DB).End()
	}
	b.End().Array("roles")
	if u := e.From.User; u != nil {
		for i, r := range u.All {
			b.Object(bson.IndexKey(i)).String("role", r.Name).String("db", r.DB).End()
		}
	}
	return e.what(b.End())
}

func (e Event) what(b *bson.Builder) bson.Doc {
	if e.Param == nil {
		e.Param = bson.EmptyDoc
	}
	return b.Document("param", e.Param).Int32("result", int32(e.Result)).Doc()
}

// Endpoint is one end of a connection: an address and a port, or a Unix domain socket.
func Endpoint(address string) bson.Doc {
	if filepath.IsAbs(address) {
		return bson.Build().String("unix", address).Doc()
	}
	host, port, err := net.SplitHostPort(address)
	n, bad := strconv.ParseUint(port, 10, 16)
	if err != nil || bad != nil || net.ParseIP(host) == nil {
		return bson.Build().String("unix", "anonymous").Doc()
	}
	return bson.Build().String("ip", host).Int32("port", int32(n)).Doc()
}
