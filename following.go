package ebb

import (
	"context"
	"errors"
	"fmt"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/kv/tikvkv"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/peer"
	"github.com/ebbdb/ebb/internal/router"
	"github.com/ebbdb/ebb/internal/server"
)

// worker is the way to the server that works on the data. It is used by one goroutine.
type worker struct {
	of      router.Target
	conn    *peer.Conn
	address string // where that one reaches this one
}

// unanswered is why a question has no answer, or an error of the other server's for one.
type unanswered struct{ error }

func (u *unanswered) Unwrap() error { return u.error }

// reconnect is for a connection that is of no use any more.
func (a *worker) reconnect(ctx context.Context, o peer.Options) error {
	_ = a.conn.Close()
	ctx, cancel := clock.WithTimeout(ctx, clock.Wall(), askTime)
	defer cancel()
	conn, err := peer.Dial(ctx, a.of.Address, o)
	if err == nil {
		a.conn = conn
	}
	return err
}

// answer is what that server says.
type answer struct {
	tikvkv.Told
	now, hidesUpTo    int64
	still             map[uint32]int64 // by collection, when time stands still there
	hidesAll, watched bool
	parameters        bson.Doc
}

const (
	followName = "ebbFollow"
	// maxAddress is how long a server's address may be.
	maxAddress = 256
	// fromNow asks where who follows begins.
	fromNow = -1
)

// isFollowing says whether a request is another server's that asks what has come.
func isFollowing(body bson.Doc) bool { return body.FirstKey() == followName }

func (a *worker) ask(ctx context.Context, place int64) (got answer, err error) {
	ctx, cancel := clock.WithTimeout(ctx, clock.Wall(), askTime)
	defer cancel()
	d, err := a.conn.Call(ctx, bson.Build().String(followName, a.of.ID).Int64("place", place).String("address", a.address).String("$db", "admin").Doc())
	if err != nil {
		return got, &unanswered{err}
	}
	return readAnswer(d)
}

// await returns when there is something behind a place, or after awaitTime, and says up to where.
func (a *worker) await(ctx context.Context, place uint64) (uint64, error) {
	ctx, cancel := clock.WithTimeout(ctx, clock.Wall(), awaitTime+askTime)
	defer cancel()
	d, err := a.conn.Call(ctx, bson.Build().String(followName, a.of.ID).Int64("await", int64(place)).String("$db", "admin").Doc())
	if err != nil {
		return 0, err
	}
	got := d.Lookup("place")
	if got.Type != bson.TypeInt64 {
		return 0, errBrokenAnswer
	}
	return uint64(got.Int64()), nil
}

var errBrokenAnswer = errors.New("another server's answer is broken")

func readAnswer(d bson.Doc) (got answer, err error) {
	number := func(name string) int64 {
		v := d.Lookup(name)
		if v.Type != bson.TypeInt64 && err == nil {
			err = fmt.Errorf("another server's answer has no %s", name)
		}
		if err != nil {
			return 0
		}
		return v.Int64()
	}
	got.Place, got.TS, got.Number, got.Millis = uint64(number("place")), uint64(number("ts")), uint64(number("number")), number("millis")
	got.now, got.hidesUpTo = number("now"), number("hidesUpTo")
	got.More, got.hidesAll, got.watched = d.Lookup("more").Truthy(), d.Lookup("hidesAll").Truthy(), d.Lookup("watched").Truthy()
	groups, parameters, still := d.Lookup("groups"), d.Lookup("parameters"), d.Lookup("still")
	if err != nil || still.Type != bson.TypeArray || groups.Type != bson.TypeArray || parameters.Type != bson.TypeObject {
		return got, errors.Join(err, errBrokenAnswer)
	}
	got.parameters = parameters.Doc()
	for it := still.Doc().Iter(); it.Next(); {
		if it.Value().Type != bson.TypeObject {
			return got, errBrokenAnswer
		}
		of := it.Value().Doc()
		if got.still == nil {
			got.still = map[uint32]int64{}
		}
		got.still[uint32(of.Lookup("collection").TruncInt64())] = of.Lookup("at").TruncInt64()
	}
	for it := groups.Doc().Iter(); it.Next(); {
		if it.Value().Type != bson.TypeObject {
			return got, errBrokenAnswer
		}
		got.Groups = append(got.Groups, it.Value().Doc())
	}
	return got, nil
}

// tellFollower answers another server that asks what has come.
func (s *Server) tellFollower(ctx context.Context, c *server.Conn, k *caller, body bson.Doc) (bson.Doc, error) {
	id, place := body.Lookup(followName), body.Lookup("place")
	if behind := body.Lookup("await"); id.Type == bson.TypeString && behind.Type == bson.TypeInt64 {
		return s.awaitGroup(ctx, c, k, id.Str(), uint64(behind.Int64()))
	}
	if id.Type != bson.TypeString || place.Type != bson.TypeInt64 {
		return nil, mongoerr.New(mongoerr.FailedToParse, "the command %s is for servers among themselves", followName)
	}
	if !s.isHolder(id.Str()) {
		return nil, errNotHere
	}
	if err := s.admitMember(ctx, c, k); err != nil { // which may wait, and so comes before
		return nil, err
	}
	d, engine := s.serving.TryEnter(), s.foundation.tikv.Load()
	if d == nil {
		return nil, errNotHere
	}
	defer d.Leave()
	if engine == nil || engine.Holder().ID != id.Str() {
		return nil, errNotHere
	}
	if address := body.Lookup("address"); address.Type == bson.TypeString && len(address.Str()) <= maxAddress {
		s.sharing.heard.hear(string([]byte(address.Str())))
	}
	// What the others are to hide by is read before what was committed: it holds behind that. Time comes first: who is told a later one knows what ended its
	// standing still.
	now, hidesUpTo, still := d.store.ToldTime()
	hidesAll := d.expiry.HideExpired.Get()
	watched, parameters := d.commands.WatchesReads(), d.commands.ReadParameters()
	var told tikvkv.Told
	var err error
	if n := place.Int64(); n == fromNow {
		told, err = engine.Latest()
	} else {
		told, err = engine.Since(uint64(n))
	}
	if err != nil {
		return nil, err
	}
	b := bson.Build().Int64("place", int64(told.Place)).Int64("ts", int64(told.TS)).Int64("number", int64(told.Number)).Int64("millis", told.Millis).
		Bool("more", told.More).Int64("now", now).Int64("hidesUpTo", hidesUpTo).Bool("hidesAll", hidesAll).Bool("watched", watched).Array("groups")
	for i, g := range told.Groups {
		b.Document(bson.IndexKey(i), g)
	}
	b.End().Array("still")
	n := 0
	for collection, at := range still {
		b.Object(bson.IndexKey(n)).Int64("collection", int64(collection)).Int64("at", at).End()
		n++
	}
	return b.End().Document("parameters", parameters).Double("ok", 1).Doc(), nil
}

// isHolder says whether this server has the keyspace under an ID.
func (s *Server) isHolder(id string) bool {
	engine := s.foundation.tikv.Load()
	return s.sharing != nil && engine != nil && engine.Holder().ID == id
}

// awaitGroup returns when there is a group behind a place, or after awaitTime. Nothing of the database is held meanwhile.
func (s *Server) awaitGroup(ctx context.Context, c *server.Conn, k *caller, id string, place uint64) (bson.Doc, error) {
	engine := s.foundation.tikv.Load()
	if !s.isHolder(id) {
		return nil, errNotHere
	}
	if err := s.admitMember(ctx, c, k); err != nil {
		return nil, err
	}
	ctx, cancel := clock.WithTimeout(ctx, clock.Wall(), awaitTime)
	defer cancel()
	engine.Await(ctx, place)
	return bson.Build().Int64("place", int64(engine.Place())).Double("ok", 1).Doc(), nil
}
