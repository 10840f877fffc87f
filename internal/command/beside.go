package command

import (
	"context"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/ebbdb/ebb/internal/auth"
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
)

// Beside are the servers that read what this one works on (ReadBeside), each at an address. What is asked of them AnswerBeside answers there:
//
//	{operations: {idle, cursors, truncate, user, db}}   what they are doing: {documents: [operation]}
//	{kill: opid}                                        nothing
//	{stage, db, coll, spec}                             what a stage tells of a server: {documents: [document]}
//	{command: {}}                                       nothing: one that is for all servers is carried out
type Beside interface {
	// AskAll asks all of them. One that does not answer is left out.
	AskAll(ctx context.Context, what bson.Doc) map[string]bson.Doc
	// Ask asks the one at an address; an error where there is none.
	Ask(ctx context.Context, address string, what bson.Doc) (bson.Doc, error)
}

// stagesBeside are those whose documents tell of what each server has done.
var stagesBeside = []string{"$indexStats", "$planCacheStats"}

// commandsBeside are carried out by all servers.
var commandsBeside = []string{"killAllSessions", "killAllSessionsByPattern", "planCacheClear", "planCacheClearFilters", "planCacheSetFilter"}

// NeedsLatest says whether an answer to that is good only from one who knows all that was committed before: what is told of an index, or said of one, is about the
// definitions of the moment.
func NeedsLatest(what bson.Doc) bool {
	name := what.FirstKey()
	return name == "stage" || name == "command"
}

// AnswerBeside answers the server that works on the data.
func (s *Server) AnswerBeside(ctx context.Context, what bson.Doc) (bson.Doc, error) {
	switch first := what.Lookup(what.FirstKey()); {
	case what.FirstKey() == "operations" && first.Type == bson.TypeObject:
		return documentsBeside(s.operations(s.readInprog(first.Doc()))), nil
	case what.FirstKey() == "kill" && first.Type == bson.TypeInt64:
		s.Log.Info("Going to kill op", "opId", first.Int64())
		s.Ops.Kill(first.Int64())
		return bson.EmptyDoc, nil
	case what.FirstKey() == "stage" && first.Type == bson.TypeString && slices.Contains(stagesBeside, first.Str()):
		ns := namespace.NS{DB: textOf(what.Lookup("db")), Coll: textOf(what.Lookup("coll"))}
		docs, err := s.documents(ctx, nil, ns, first.Str(), what.Lookup("spec"))
		return documentsBeside(docs), err
	case what.FirstKey() == "command" && first.Type == bson.TypeObject && slices.Contains(commandsBeside, first.Doc().FirstKey()):
		conn := NewConn(0, "", "")
		conn.become(auth.Internal())
		return bson.EmptyDoc, replyError(s.Handle(ctx, conn, Request{Body: first.Doc()}))
	}
	return nil, mongoerr.New(mongoerr.FailedToParse, "another server asks for what is not known here")
}

// replyError is the error that a reply tells of.
func replyError(r Reply) error {
	if r.Body == nil || r.Body.Lookup("ok").Truthy() {
		return nil
	}
	return mongoerr.New(mongoerr.OperationFailed, "%s", textOf(r.Body.Lookup("errmsg")))
}

func textOf(v bson.Value) string {
	if v.Type != bson.TypeString {
		return ""
	}
	return string([]byte(v.Str()))
}

func documentsBeside(docs []bson.Doc) bson.Doc {
	b := bson.Build().Array("documents")
	for i, d := range docs {
		b.Document(bson.IndexKey(i), d)
	}
	return b.End().Doc()
}

// askBeside are the documents that all other servers answer with, by address.
func (s *Server) askBeside(ctx context.Context, what bson.Doc) map[string][]bson.Doc {
	if s.Beside == nil {
		return nil
	}
	all := map[string][]bson.Doc{}
	for address, said := range s.Beside.AskAll(ctx, what) {
		docs := said.Lookup("documents")
		if docs.Type != bson.TypeArray {
			continue
		}
		for it := docs.Doc().Iter(); it.Next(); {
			if it.Value().Type == bson.TypeObject {
				all[address] = append(all[address], it.Value().Doc())
			}
		}
	}
	return all
}

// encode is what other servers are asked for; transactions they have none.
func (want *inprog) encode() bson.Doc {
	b := bson.Build().Bool("idle", want.idle).Bool("cursors", want.cursors).Bool("truncate", want.truncate)
	if want.whose != nil && want.whose.user != nil {
		b.String("user", want.whose.user.Name.Name).String("db", want.whose.user.DB)
	}
	return b.Doc()
}

// readInprog is the inverse of encode.
func (s *Server) readInprog(d bson.Doc) inprog {
	want := inprog{idle: d.Lookup("idle").Truthy(), cursors: d.Lookup("cursors").Truthy(), truncate: d.Lookup("truncate").Truthy()}
	if user := d.Lookup("user"); user.Type == bson.TypeString {
		want.whose = &viewer{s, &auth.User{Name: auth.Name{Name: textOf(user), DB: textOf(d.Lookup("db"))}}}
	}
	return want
}

// operationsBeside are those of the other servers, under opids that tell which one.
func (s *Server) operationsBeside(ctx context.Context, want inprog) (rows []bson.Doc) {
	for address, docs := range s.askBeside(ctx, bson.Build().Document("operations", want.encode()).Doc()) {
		for _, d := range docs {
			shown := []field{{"host", bson.String(address)}}
			if id := d.Lookup("opid"); id.IsNumber() { // it has none while it waits for its client
				shown = append(shown, field{"opid", bson.String(address + ":" + strconv.FormatInt(id.TruncInt64(), 10))})
			}
			rows = append(rows, with(d, shown...))
		}
	}
	return rows
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
	if _, err := op.Beside.Ask(op.Ctx, address, bson.Build().Int64("kill", id).Doc()); err != nil {
		return nil, err
	}
	return bson.Build().String("info", "attempting to kill op").Doc(), nil
}

// ownsBeside says whether an operation of another server is that of the user who runs the command.
func (op *Op) ownsBeside(opid string) bool {
	if op.user() == nil {
		return false
	}
	for _, o := range op.operationsBeside(context.Background(), inprog{whose: op.viewer(), truncate: true}) { // each is called for a moment at most
		if textOf(o.Lookup("opid")) == opid {
			return true
		}
	}
	return false
}

// stageBeside are the documents of a stage with what it tells of the other servers: an index is used as often as all of them use it.
func (s *Server) stageBeside(ctx context.Context, ns namespace.NS, name string, spec bson.Value, own []bson.Doc) []bson.Doc {
	if s.Beside == nil || !slices.Contains(stagesBeside, name) {
		return own
	}
	what := bson.Build().String("stage", name).String("db", ns.DB).String("coll", ns.Coll).Value("spec", spec).Doc()
	for address, docs := range s.askBeside(ctx, what) {
		for _, d := range docs {
			if name == "$indexStats" {
				own = addUses(own, d)
			} else {
				own = append(own, with(d, field{"host", bson.String(address)}))
			}
		}
	}
	return own
}

// addUses adds how often another server has used an index.
func addUses(own []bson.Doc, there bson.Doc) []bson.Doc {
	more := there.Lookup("accesses")
	for i, d := range own {
		uses := d.Lookup("accesses")
		if textOf(d.Lookup("name")) != textOf(there.Lookup("name")) || uses.Type != bson.TypeObject || more.Type != bson.TypeObject {
			continue
		}
		sum := uses.Doc().Lookup("ops").TruncInt64() + more.Doc().Lookup("ops").TruncInt64()
		own[i] = with(d, field{"accesses", with(uses.Doc(), field{"ops", bson.Int64(sum)}).Value()})
	}
	return own
}

// alsoBeside has the other servers carry a command out, too.
func (op *Op) alsoBeside() {
	if slices.Contains(commandsBeside, op.Command.Name) {
		op.Beside.AskAll(op.Ctx, bson.Build().Document("command", op.Args.Document()).Doc())
	}
}
