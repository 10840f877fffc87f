package e2e

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/ebbdb/ebb/e2e/godriver"
)

var (
	failovers      = flag.Int("failovers", 2, "how often TestFailover kills the primary under each client, and stops it as often")
	failoverClient = flag.String("failover-client", "", "the one client of TestFailover that runs: go, node/failover or java/failover; all where it is empty")
)

// failoverTime is what one failover may take with all that is waited for until the set is whole again, on a busy machine.
const failoverTime = 15 * time.Second

// TestFailover: the primary of three servers is killed, and stopped, again and again under the drivers of three languages, while each writes as fast as it
// is told. No server answers a write with an error, and all that was acknowledged is there. How long it took until the first write was acknowledged by another primary is in
// the log of the test.
func TestFailover(t *testing.T) {
	clients := []client{
		{name: "node/failover", needs: node(), dir: "node", argv: []string{"node", "failover.mjs"}},
		java(javaClients, "failover", "ebb.Failover"),
	}
	wanted := func(name string) bool { return *failoverClient == "" || *failoverClient == name }
	if wanted("go") {
		t.Run("go", func(t *testing.T) { // the first, and the quickest to tell what is wrong
			s := startThreeServers(t)
			s.initiate()
			f := &failover{threeServers: s}
			defer f.tell()
			seen := &sights{began: time.Now()}
			client, err := mongo.Connect(seen.options().ApplyURI(fmt.Sprintf("mongodb://%s,%s,%s/?replicaSet=rs0", s.hosts[0], s.hosts[1], s.hosts[2])))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = client.Disconnect(context.Background()) }()
			f.write(client.Database("e2e_go_failover").Collection("c"))
			if t.Failed() {
				t.Logf("the driver has seen:\n%s", seen)
			}
		})
	}
	for _, c := range clients {
		if !wanted(c.name) {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			c.require(t)
			s := startThreeServers(t)
			s.initiate()
			f := &failover{threeServers: s}
			defer f.tell()
			server := httptest.NewServer(f)
			defer server.Close()
			c.limit = clientLimit + time.Duration(*failovers)*2*failoverTime
			c.run(t, fmt.Sprintf("mongodb://%s,%s,%s/?replicaSet=rs0", s.hosts[0], s.hosts[1], s.hosts[2]),
				"EBB_FAILOVER_URL="+server.URL, fmt.Sprintf("EBB_FAILOVERS=%d", *failovers))
		})
	}
}

// The ways in which a primary goes.
const (
	byKill = "kill" // kill -9
	byStop = "stop" // SIGTERM
)

// failover has the primaries of a set go, and come back.
type failover struct {
	*threeServers
	mu      sync.Mutex // guards all below; one goes at a time
	gone    int
	stopped chan error
	times   map[string][]time.Duration
}

// ServeHTTP is how clients of other languages ask for it.
func (f *failover) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var err error
	switch how := r.URL.Path[1:]; how {
	case byKill, byStop:
		f.end(how)
	case "restore":
		var millis int
		if millis, err = strconv.Atoi(r.FormValue("millis")); err == nil {
			err = f.restore(r.FormValue("how"), time.Duration(millis)*time.Millisecond)
		}
	case "told":
		f.t.Logf("the driver gave %s of %s writes up", r.FormValue("given"), r.FormValue("of"))
		if given, failed := strconv.Atoi(r.FormValue("given")); failed != nil || given > *failovers*2*mostGivenUp {
			err = fmt.Errorf("more writes were given up than its connections had ended: %s (%v)", r.FormValue("given"), failed)
		}
	default:
		err = errors.New("nobody knows what that is")
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

// end has the primary go. When it returns that is gone, or has been asked to.
func (f *failover) end(how string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.gone = f.primary()
	server, stopped := f.servers[f.gone], make(chan error, 1)
	f.stopped = stopped
	if how == byKill {
		server.Kill()
		stopped <- nil
		return
	}
	go func() { stopped <- server.Stop() }()
}

// restore notes how long it took until the first write was acknowledged, and has who has gone come back. When it returns the set is whole.
func (f *failover) restore(how string, took time.Duration) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.times == nil {
		f.times = map[string][]time.Duration{}
	}
	f.times[how] = append(f.times[how], took)
	if err := <-f.stopped; err != nil {
		return err
	}
	f.start(f.gone)
	own := f.direct(f.gone)
	for deadline := time.Now().Add(failoverTime); ; time.Sleep(20 * time.Millisecond) {
		err := f.isWhole(own)
		if err == nil || time.Now().After(deadline) {
			return err
		}
	}
}

// isWhole says whether a member that has come back is a secondary, and has about what the primary has.
func (f *failover) isWhole(own *mongo.Client) error {
	var status struct {
		Members []struct {
			StateStr string
			Optime   struct{ TS bson.Timestamp }
			Self     bool
		}
	}
	if err := own.Database("admin").RunCommand(f.t.Context(), bson.M{"replSetGetStatus": 1}).Decode(&status); err != nil {
		return err
	}
	states := map[string]int{}
	var ownTime, latest bson.Timestamp
	for _, m := range status.Members {
		if states[m.StateStr]++; m.Self {
			ownTime = m.Optime.TS
		}
		if m.Optime.TS.After(latest) {
			latest = m.Optime.TS
		}
	}
	if states["PRIMARY"] != 1 || states["SECONDARY"] != 2 || ownTime.T+1 < latest.T {
		return fmt.Errorf("the members are %v, and it is at %d of %d", states, ownTime.T, latest.T)
	}
	return nil
}

// write writes through all failovers.
func (f *failover) write(coll *mongo.Collection) {
	t := f.t
	insert := func(id string) {
		_, err := coll.InsertOne(t.Context(), bson.M{"_id": id})
		for attempt := 1; attempt < maxAttempts && godriver.Unsent(err); attempt++ {
			t.Logf("the driver gives up before it has sent %q", id)
			_, err = coll.InsertOne(t.Context(), bson.M{"_id": id})
		}
		if err != nil {
			t.Errorf("insert %q: %v", id, err)
		}
	}
	stream, err := coll.Watch(t.Context(), mongo.Pipeline{})
	if err != nil {
		t.Fatal(err)
	}
	var events sync.Map // each _id that the stream has told of
	told := make(chan error, 1)
	go func() {
		err := f.listen(stream, &events)
		token := stream.ResumeToken()
		for godriver.Unsent(err) {
			t.Log("the driver gives the stream up before it has asked for more")
			_ = stream.Close(context.Background())
			again, failed := coll.Watch(t.Context(), mongo.Pipeline{}, options.ChangeStream().SetResumeAfter(token))
			if err = failed; err == nil {
				stream = again
				err, token = f.listen(stream, &events), stream.ResumeToken()
			}
		}
		_ = stream.Close(context.Background())
		told <- err
	}()
	insert("first")
	const beside = 2
	var over atomic.Bool
	var written, slowest atomic.Int64
	var writers sync.WaitGroup
	for w := range beside {
		writers.Go(func() {
			for n := 0; !over.Load() && !t.Failed(); n++ {
				began := time.Now()
				insert(fmt.Sprintf("writer %d %d", w, n))
				slowest.Store(max(slowest.Load(), int64(time.Since(began))))
				written.Add(1)
				time.Sleep(5 * time.Millisecond)
			}
		})
	}
	defer func() { t.Logf("the slowest of %d writes took %v", written.Load(), time.Duration(slowest.Load())) }()
	for n := 0; n < *failovers && !t.Failed(); n++ {
		for _, how := range []string{byKill, byStop} {
			// This driver does not try again what fails while it makes a connection, so all have theirs before.
			for before := written.Load(); written.Load() < before+4*beside && !t.Failed(); {
				time.Sleep(5 * time.Millisecond)
			}
			f.end(how)
			began := time.Now()
			insert(fmt.Sprintf("%s %d", how, n))
			if err := f.restore(how, time.Since(began)); err != nil {
				t.Error(err)
			}
			written.Add(1)
		}
	}
	over.Store(true)
	writers.Wait()
	insert(last)
	written.Add(1)
	if err := <-told; err != nil {
		t.Error("the change stream:", err)
	}
	n := int64(0)
	events.Range(func(any, any) bool { n++; return true })
	if n != written.Load()+1 {
		t.Errorf("the change stream tells of %d inserts; %d were acknowledged", n, written.Load()+1)
	}
	if n, err := coll.CountDocuments(context.WithoutCancel(t.Context()), bson.M{}); err != nil || n != written.Load()+1 {
		t.Errorf("%d documents, %v; %d were acknowledged", n, err, written.Load()+1)
	}
}

// mostGivenUp is how often a driver may give a write up in one failover: as often as there are who write, and each once more.
const mostGivenUp = 2 * 3

// maxAttempts is how often a write is begun that its driver gives up before it has sent it: more than there are connections that can have ended.
const maxAttempts = 10

// last is the document that comes after all others.
const last = "last"

// listen notes what a change stream tells of until the last document: each insert once, and no error that its driver gives it up for.
func (f *failover) listen(stream *mongo.ChangeStream, events *sync.Map) error {
	for stream.Next(f.t.Context()) {
		id := stream.Current.Lookup("documentKey", "_id").StringValue()
		if _, twice := events.LoadOrStore(id, true); twice {
			return fmt.Errorf("%q comes twice", id)
		}
		if id == last {
			return nil
		}
	}
	return errors.Join(errors.New("it has ended"), stream.Err())
}

// sights are the last things that a driver has seen of its servers, for when something fails.
type sights struct {
	began time.Time
	mu    sync.Mutex // guards lines
	lines []string
}

// maxSights is how many are kept.
const maxSights = 80

func (s *sights) note(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, fmt.Sprintf("%9.4f ", time.Since(s.began).Seconds())+fmt.Sprintf(format, args...))
	s.lines = s.lines[max(0, len(s.lines)-maxSights):]
}

func (s *sights) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.lines, "\n")
}

func (s *sights) options() *options.ClientOptions {
	return options.Client().
		SetServerMonitor(&event.ServerMonitor{
			ServerDescriptionChanged: func(e *event.ServerDescriptionChangedEvent) {
				s.note("%s: %s, then %s", e.Address, e.PreviousDescription.Kind, e.NewDescription.Kind)
			},
			ServerHeartbeatFailed: func(e *event.ServerHeartbeatFailedEvent) { s.note("%s: no heartbeat: %v", e.ConnectionID, e.Failure) },
		}).
		SetPoolMonitor(&event.PoolMonitor{Event: func(e *event.PoolEvent) {
			switch e.Type {
			case event.ConnectionPoolCleared, event.ConnectionPoolReady, event.ConnectionCheckOutFailed:
				s.note("%s: %s %s %v", e.Address, e.Type, e.Reason, e.Error)
			}
		}}).
		SetMonitor(&event.CommandMonitor{Failed: func(_ context.Context, e *event.CommandFailedEvent) {
			s.note("%s: %s fails: %v", e.ConnectionID, e.CommandName, e.Failure)
		}})
}

// tell tells how long the failovers took.
func (f *failover) tell() {
	for how, times := range f.times {
		slices.Sort(times)
		f.t.Logf("%d failovers by %s: the first write was acknowledged after %v, median, %v at worst; %v", len(times), how, times[len(times)/2], times[len(times)-1], times)
	}
}
