package router_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/peer"
	"github.com/ebbdb/ebb/internal/router"
	"github.com/ebbdb/ebb/internal/wire"
)

func newCodec(t *testing.T) *wire.Codec {
	t.Helper()
	c, err := wire.NewCodec(nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// worker is a server that works on the data, as a router sees it: it knows its own id, and answers requests by answer.
type worker struct {
	t        *testing.T
	listener net.Listener
	id       string
	answer   func(m *wire.Message) bson.Doc // nil: none ever comes
	met      chan router.Introduction
	asked    chan string // what was asked, in words
	conns    sync.Map
}

func newWorker(t *testing.T, id string, answer func(*wire.Message) bson.Doc) *worker {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &worker{t: t, listener: l, id: id, answer: answer, met: make(chan router.Introduction, 16), asked: make(chan string, 16)}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			w.conns.Store(conn, nil)
			serving.Go(func() { w.serve(conn) })
		}
	})
	t.Cleanup(func() { w.end(); serving.Wait() })
	return w
}

func (w *worker) target() router.Target {
	return router.Target{Address: w.listener.Addr().String(), ID: w.id}
}

// end ends it as a crash does.
func (w *worker) end() {
	w.listener.Close()
	w.conns.Range(func(conn, _ any) bool { conn.(net.Conn).Close(); return true })
}

func (w *worker) serve(conn net.Conn) {
	defer conn.Close()
	codec := newCodec(w.t)
	in, out := codec.NewReader(conn), codec.NewWriter(conn)
	for {
		m, err := in.ReadMessage()
		if err != nil {
			return
		}
		reply := bson.MustDoc("{ok: 1}")
		switch {
		case router.IsIntroduction(m.Body):
			said, err := router.ReadIntroduction(m.Body)
			if err != nil || said.ID != w.id {
				reply = bson.MustDoc("{ok: 0, errmsg: 'not here', code: 10107}")
			}
			w.met <- said
		default:
			asked := m.Body.String()
			for _, s := range m.Sequences {
				asked += " " + s.Name
				for d := range s.Docs() {
					asked += " " + d.String()
				}
			}
			w.asked <- asked
			if m.Flags.Has(wire.FlagMoreToCome) {
				m.Release()
				continue
			}
			if w.answer == nil {
				m.Release()
				continue
			}
			reply = w.answer(m)
		}
		m.Release()
		if _, err := out.WriteMessage(wire.Outgoing{OpCode: wire.OpMsg, Compressor: wire.Uncompressed, Body: reply}); err != nil {
			return
		}
	}
}

func newRouter(t *testing.T, wall clock.Clock) *router.Router {
	return router.New(router.Options{Wall: wall, Peers: func() peer.Options { return peer.Options{Codec: newCodec(t)} }, Failed: func(router.Target, error) {}})
}

func ok(*wire.Message) bson.Doc { return bson.MustDoc("{ok: 1, n: 2}") }

// request is one with a document sequence, as a client sends it.
func request(t *testing.T) (q peer.Request) {
	t.Helper()
	here, there := net.Pipe()
	t.Cleanup(func() { here.Close(); there.Close() })
	// A message as drivers write it: a body, and a section of two documents.
	documents := append(bson.MustDoc("{_id: 1}"), bson.MustDoc("{_id: 2}")...)
	section := append([]byte("documents\x00"), documents...)
	body := bson.MustDoc("{insert: 'c', $db: 'test'}")
	message := make([]byte, 16, 256)
	message = append(message, 0, 0, 0, 0, 0)
	message = append(message, body...)
	message = append(message, 1, byte(len(section)+4), 0, 0, 0)
	message = append(message, section...)
	message[0] = byte(len(message))
	message[12], message[13] = 0xdd, 0x07
	go func() { _, _ = here.Write(message) }()
	m, err := newCodec(t).NewReader(there).ReadMessage()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Release)
	return peer.Request{Body: m.Body, Sequences: m.Sequences}
}

func ping() peer.Request { return peer.Request{Body: bson.MustDoc("{ping: 1, $db: 'admin'}")} }

func want(t *testing.T, what string, got bson.Doc, err error, doc string) {
	t.Helper()
	if err != nil || got.String() != bson.MustDoc(doc).String() {
		t.Errorf("%s: %v, %v; want %s", what, got, err, doc)
	}
}

// A request goes on with all that it has, its reply comes back as it is, and another server is told whom a connection is for.
func TestHandsOn(t *testing.T) {
	w := newWorker(t, "a", func(m *wire.Message) bson.Doc {
		if m.Body.FirstKey() == "ping" {
			return bson.MustDoc("{ok: 0, code: 13, errmsg: 'no'}") // an error is a reply
		}
		return ok(m)
	})
	r := newRouter(t, clock.Wall())
	r.Follow(w.target())
	var k router.Client
	defer r.Forget(&k)
	reply, err := r.Handle(t.Context(), &k, "1.2.3.4:5", request(t))
	want(t, "an insert", reply, err, "{ok: 1, n: 2}")
	if said := <-w.met; said.Remote != "1.2.3.4:5" {
		t.Errorf("the other server is told of %q", said.Remote)
	}
	const inserted = "{insert: 'c', $db: 'test'}"
	if asked := <-w.asked; asked != bson.MustDoc(inserted).String()+" documents "+bson.MustDoc("{_id: 1}").String()+" "+bson.MustDoc("{_id: 2}").String() {
		t.Errorf("it is asked %s", asked)
	}
	reply, err = r.Handle(t.Context(), &k, "", ping())
	want(t, "an error", reply, err, "{ok: 0, code: 13, errmsg: 'no'}")
	<-w.asked
	silent := ping()
	silent.NoReply = true
	if reply, err = r.Handle(t.Context(), &k, "", silent); reply != nil || err != nil {
		t.Errorf("one without a reply: %v, %v", reply, err)
	}
	<-w.asked
	if s := r.Stats(); s.Target != w.target().Address || s.Handed != 3 || s.Clients != 1 || s.Here {
		t.Errorf("the figures are %+v", s)
	}
	_, err = r.Handle(t.Context(), &k, "", peer.Request{Body: bson.MustDoc("{shutdown: 1, $db: 'admin'}")})
	if !mongoerr.Is(err, mongoerr.IllegalOperation) {
		t.Errorf("shutdown: %v", err)
	}
}

// Who comes while no server has the data waits for one, and is told when it is this one.
func TestWaits(t *testing.T) {
	w := newWorker(t, "a", ok)
	r := newRouter(t, clock.Wall())
	wrong := w.target()
	wrong.ID = "another"
	for _, before := range []func(){func() {}, r.Nowhere, func() { r.Follow(wrong) }, func() { r.Follow(router.Target{Address: "127.0.0.1:1", ID: "gone"}) }} {
		before()
		done := make(chan error)
		var k router.Client
		go func() {
			_, err := r.Handle(t.Context(), &k, "", ping())
			r.Forget(&k)
			done <- err
		}()
		r.Follow(w.target())
		if err := <-done; err != nil {
			t.Error(err)
		}
		<-w.asked
	}
	r.Here()
	var k router.Client
	if _, err := r.Handle(t.Context(), &k, "", ping()); !errors.Is(err, router.ErrHere) || k.Begun() {
		t.Errorf("where the data is here: %v", err)
	}
}

// Nobody waits for ever.
func TestWaitEnds(t *testing.T) {
	still := clock.NewFake(time.Unix(0, 0))
	r := newRouter(t, still)
	done := make(chan error)
	var k router.Client
	go func() {
		_, err := r.Handle(t.Context(), &k, "", ping())
		done <- err
	}()
	for {
		select {
		case err := <-done:
			if !errors.Is(err, router.ErrNobody) {
				t.Error(err)
			}
			return
		default:
			still.Advance(time.Second)
		}
	}
}

// A client whose request was on its way when the server behind it ended, or another one took over, begins anew.
func TestGone(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(r *router.Router, w *worker)
	}{
		{"the server ends", func(_ *router.Router, w *worker) { w.end() }},
		{"another one takes over", func(r *router.Router, _ *worker) { r.Follow(router.Target{Address: "127.0.0.1:1", ID: "b"}) }},
		{"this one takes over", func(r *router.Router, _ *worker) { r.Here() }},
		{"nobody is known", func(r *router.Router, _ *worker) { r.Nowhere() }},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorker(t, "a", nil)
			r := newRouter(t, clock.Wall())
			r.Follow(w.target())
			done := make(chan error)
			var k router.Client
			defer r.Forget(&k)
			go func() {
				_, err := r.Handle(t.Context(), &k, "", ping())
				done <- err
			}()
			<-w.asked
			c.end(r, w)
			if err := <-done; !errors.Is(err, router.ErrGone) {
				t.Errorf("the request ends with %v", err)
			}
			if k.Begun() {
				t.Error("there is something behind it still")
			}
			again := newWorker(t, "c", ok)
			r.Follow(again.target())
			if _, err := r.Handle(t.Context(), &k, "", ping()); err != nil {
				t.Errorf("the next one ends with %v", err)
			}
		})
	}
}

// A client that asked for nothing while another server took over is told so before anything of it is handed on.
func TestMoved(t *testing.T) {
	first, second := newWorker(t, "a", ok), newWorker(t, "b", ok)
	r := newRouter(t, clock.Wall())
	var k router.Client
	defer r.Forget(&k)
	r.Follow(first.target())
	if _, err := r.Handle(t.Context(), &k, "", ping()); err != nil {
		t.Fatal(err)
	}
	r.Follow(second.target())
	if _, err := r.Handle(t.Context(), &k, "", ping()); !errors.Is(err, router.ErrMoved) || k.Begun() {
		t.Errorf("after another one has taken over: %v", err)
	}
	if _, err := r.Handle(t.Context(), &k, "", ping()); err != nil {
		t.Error(err)
	}
	if len(first.asked) != 1 || len(second.asked) != 1 || r.Stats().Clients != 1 {
		t.Errorf("the first server was asked %d times and the second %d; %+v", len(first.asked), len(second.asked), r.Stats())
	}
}

// A request ends with who has sent it.
func TestHangUp(t *testing.T) {
	w := newWorker(t, "a", nil)
	r := newRouter(t, clock.Wall())
	r.Follow(w.target())
	ctx, hangUp := context.WithCancel(t.Context())
	var k router.Client
	defer r.Forget(&k)
	done := make(chan error)
	go func() {
		_, err := r.Handle(ctx, &k, "", ping())
		done <- err
	}()
	<-w.asked
	hangUp()
	if err := <-done; !errors.Is(err, router.ErrGone) {
		t.Error(err)
	}
}

// What another server says of itself is read with care.
func TestIntroduction(t *testing.T) {
	said := router.Introduction{ID: "a", Remote: "1.2.3.4:5"}
	if got, err := router.ReadIntroduction(said.Doc()); got != said || err != nil {
		t.Errorf("%+v, %v", got, err)
	}
	for _, doc := range []string{"{ebbRoute: 1}", "{ebbRoute: 'a'}", "{ebbRoute: 'a', remote: 1}", "{ebbRoute: 'a', remote: '" + strings.Repeat("x", 300) + "'}"} {
		if _, err := router.ReadIntroduction(bson.MustDoc(doc)); !mongoerr.Is(err, mongoerr.FailedToParse) {
			t.Errorf("%.40s: %v", doc, err)
		}
	}
}
