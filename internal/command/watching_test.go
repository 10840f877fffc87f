package command

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/resumetoken"
)

// stream is a change stream of a case file:
//
//	watch s coll=c
//	{fullDocument: 'updateLookup'}
//	{$match: {operationType: 'insert'}}
//	----
//
// The first line of the input is the argument of $changeStream, the others are stages. Arguments:
//
//	db=test        the database (test when it is left out)
//	coll=c         the collection; the database is watched without one
//	resume=(s,2)   resumeAfter is the token of the second event that the stream s has given, -1 of its last; 0 stands for its
//	               postBatchResumeToken
//	start=(s,2)    the same with startAfter
//
// "events s n=2" reads a batch of up to two events. Tokens and UUIDs are not shown; that tokens rise is checked.
type stream struct {
	id       int64
	db, coll string
	tokens   []bson.Doc
	mark     bson.Doc
}

var hiddenInEvents = regexp.MustCompile(`"8[0-9A-F]{20,}(\.\.\.)?"|UUID\("[^"]*"\)`)

func (h *harness) watchCase(t *testing.T, d *datadriven.TestData) string {
	s := &stream{db: "test"}
	d.MaybeScanArgs(t, "db", &s.db)
	d.MaybeScanArgs(t, "coll", &s.coll)
	stages := commandsIn(t, d)
	watch := bson.Build().Fields(stages[0])
	for _, how := range [...][2]string{{"resume", "resumeAfter"}, {"start", "startAfter"}} {
		if d.HasArg(how[0]) {
			name, n := "", 0
			d.ScanArgs(t, how[0], &name, &n)
			watch.Document(how[1], h.streams[name].token(n))
		}
	}
	b := bson.Build()
	if s.coll != "" {
		b.String("aggregate", s.coll)
	} else {
		b.Int32("aggregate", 1)
	}
	b.Array("pipeline").Object("0").Document("$changeStream", watch.Doc()).End()
	for i, stage := range stages[1:] {
		b.Document(bson.IndexKey(i+1), stage)
	}
	reply := h.send(t.Context(), "1", s.db, b.End().Object("cursor").End().Doc()).Body
	if h.streams == nil {
		h.streams = map[string]*stream{}
	}
	h.streams[d.CmdArgs[0].Key] = s
	return s.show(t, reply, "firstBatch")
}

func (h *harness) eventsCase(t *testing.T, d *datadriven.TestData) string {
	s := h.streams[d.CmdArgs[0].Key]
	n := 0
	d.MaybeScanArgs(t, "n", &n)
	coll := s.coll
	if coll == "" {
		coll = "$cmd.aggregate"
	}
	b := bson.Build().Int64("getMore", s.id).String("collection", coll).Int32("maxTimeMS", 0)
	if n > 0 {
		b.Int32("batchSize", int32(n))
	}
	return s.show(t, h.send(t.Context(), "1", s.db, b.Doc()).Body, "nextBatch")
}

// token is that of the n-th event, from 1 on, or the last of a batch.
func (s *stream) token(n int) bson.Doc {
	switch {
	case n == 0:
		return s.mark
	case n < 0:
		return s.tokens[len(s.tokens)+n]
	}
	return s.tokens[n-1]
}

// show prints the events of a reply, and looks at its tokens.
func (s *stream) show(t *testing.T, reply bson.Doc, batch string) string {
	if !reply.Lookup("ok").Truthy() {
		return hiddenInEvents.ReplaceAllString(showReply(withoutTimes(reply), nil, nil, false), "…") + "\n"
	}
	cursor := reply.Lookup("cursor").Doc()
	var out strings.Builder
	for it := cursor.Lookup(batch).Doc().Iter(); it.Next(); {
		event := it.Value().Doc()
		s.rise(t, event.Lookup("_id").Doc())
		s.tokens = append(s.tokens, event.Lookup("_id").Doc().Clone())
		text := strings.Replace(event.String(), "_id: { _data: "+event.Lookup("_id").Doc().Lookup("_data").String()+" }, ", "", 1)
		fmt.Fprintln(&out, hiddenInEvents.ReplaceAllString(text, "…"))
	}
	mark := cursor.Lookup("postBatchResumeToken")
	if mark.Type != bson.TypeObject {
		t.Fatalf("%s has no token", reply)
	}
	s.rise(t, mark.Doc())
	if s.mark = mark.Doc().Clone(); cursor.Lookup("id").Int64() == 0 {
		out.WriteString("closed\n")
	}
	s.id = cursor.Lookup("id").Int64()
	return out.String()
}

// rise fails when a token comes before one that was given.
func (s *stream) rise(t *testing.T, token bson.Doc) {
	now, err := resumetoken.Parse(token)
	if err != nil {
		t.Fatal(token, err)
	}
	for _, before := range append(s.tokens[max(0, len(s.tokens)-1):], s.mark) {
		if before == nil {
			continue
		}
		was, err := resumetoken.Parse(before)
		if err != nil || resumetoken.Compare(was, now) > 0 || before.Lookup("_data").Str() > token.Lookup("_data").Str() {
			t.Errorf("%s comes behind %s, %v", token, before, err)
		}
	}
}
