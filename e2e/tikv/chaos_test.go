package tikv

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/ebbdb/ebb/e2e/launch"
	"github.com/ebbdb/ebb/e2e/network"
	"github.com/ebbdb/ebb/e2e/tikv/cluster"
)

var (
	disturbed = flag.Duration("chaos", time.Minute, "how long the processes of TestChaos are disturbed")
	chaosOnly = flag.String("chaos-only", "", "disturb only whom and as this says, such as \"another PD is frozen\", or a part of it")
	chaosSeed = flag.Uint64("chaos-seed", 0, "the order of disturbances; 0 for any")
)

const (
	chaosStores, chaosPDs, chaosServers = 3, 3, 3
	// shortFault and longFault are how long a disturbance lasts, in turn: shorter and longer than a lease.
	shortFault, longFault = 4 * time.Second, 20 * time.Second
	// backLimit is how long is waited for latencies to be as before, from the end of a disturbance on, and restTime how long all is left alone then.
	backLimit, restTime = 60 * time.Second, 5 * time.Second
	// backGoal is when they should be, from the beginning of the disturbance on. It is told of, not held to: the machine has others to serve.
	backGoal = 15 * time.Second
	// serverLogShown is how many bytes of a server's log are shown when something fails.
	serverLogShown = 8 << 10
	// deadTime is how long nothing at all may be answered, whatever is disturbed: no fault here lasts so long, nor does what has to come after it.
	deadTime = 120 * time.Second
)

// arena is a cluster of three placement drivers and three stores, and three servers on one keyspace, each process on a machine of its own where the
// kernel lets machines be made.
type arena struct {
	t       *testing.T
	network *network.Network // nil: all are on this machine
	places  map[string]*network.Machine
	cluster *cluster.Cluster
	program string
	servers [chaosServers]*server
	killed  map[string]bool // the processes that have ended because they were killed
	ended   map[string]int  // how often one did by itself, which only a test store may
}

// server is one that is started again where it was.
type server struct {
	*launch.Server
	name string
	args []string
}

// TestChaos: whatever befalls one process at a time, nothing that was acknowledged is lost, sums hold in each state that is read, a retryable write and
// a transaction happen once, single documents are linearizable, no document is seen that has expired where that is hidden, and none is gone early.
// How long latencies take to be as before is in the log.
func TestChaos(t *testing.T) {
	a := newArena(t)
	l := beginWork(t, a.client())
	eventually(t, "the clients have begun", l.hasBegun)
	seed := *chaosSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("again: -chaos %v -chaos-seed %d", *disturbed, seed)
	a.disturb(l, rand.New(rand.NewPCG(seed, seed)))
	l.end()
	l.check(a.client())
	if len(a.ended) > 0 {
		t.Log("ended by itself: ", a.ended)
	}
}

func newArena(t *testing.T) *arena {
	t.Helper()
	if !*asked {
		t.Skip("needs a TiKV cluster, which takes minutes to build: make tikv")
	}
	a := &arena{t: t, places: map[string]*network.Machine{}, killed: map[string]bool{}, ended: map[string]int{}}
	n, err := network.New(chaosStores + chaosPDs + chaosServers)
	if err != nil {
		t.Log("nobody is cut off, since network namespaces cannot be made here: ", err)
	} else {
		a.network = n
		t.Cleanup(func() {
			if err := n.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	a.cluster, a.program = openAs(t, cluster.Options{Stores: chaosStores, PDs: chaosPDs, Place: a.place})
	for i := range a.servers {
		a.servers[i] = a.serve(fmt.Sprintf("ebb%d", i+1))
	}
	return a
}

// place gives who asks for the first time a machine.
func (a *arena) place(name string) cluster.Place {
	if a.network == nil {
		return cluster.Place{Address: "127.0.0.1"}
	}
	if a.places[name] == nil {
		a.places[name] = a.network.Machines[len(a.places)]
	}
	return cluster.Place{Address: a.places[name].Address(), Prefix: a.places[name].Prefix()}
}

func (a *arena) serve(name string) *server {
	a.t.Helper()
	place := a.place(name)
	port := "27017"
	if a.network == nil {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		noError(a.t, err)
		_, port, err = net.SplitHostPort(l.Addr().String())
		noError(a.t, errors.Join(err, l.Close()))
	}
	s := &server{name: name, args: slices.Concat(place.Prefix, []string{a.program, "serve", "--storageEngine", "tikv", "--tikvPD", a.cluster.PD(), "--bind_ip", place.Address,
		"--port", port, "--nounixsocket", "--consolePort", "0"})}
	noError(a.t, s.start(a.t))
	a.t.Cleanup(func() {
		s.Kill()
		if a.t.Failed() {
			log := s.Log()
			a.t.Logf("the end of the log of %s:\n%s", s.name, log[max(0, len(log)-serverLogShown):])
		}
	})
	return s
}

func (s *server) start(t *testing.T) (err error) {
	s.Server, err = launch.Start(t.Context(), exec.Command(s.args[0], s.args[1:]...))
	return err
}

// client is one of all servers. It finds out within a few seconds that one of them hangs.
func (a *arena) client() *mongo.Client {
	a.t.Helper()
	var hosts []string
	for _, s := range a.servers {
		hosts = append(hosts, s.Addr)
	}
	c, err := mongo.Connect(options.Client().ApplyURI("mongodb://" + strings.Join(hosts, ",") + "/?connectTimeoutMS=2000&heartbeatFrequencyMS=1000&timeoutMS=40000"))
	noError(a.t, err)
	disconnectAtEnd(a.t, c)
	return c
}

// fault is what befalls one process.
type fault struct {
	whom, what string
	whole      bool // it needs a network
}

// Whom it befalls.
const (
	works    = "the server that works"
	handsOn  = "a server that hands on"
	store    = "the store that leads the data"
	otherOne = "another store"
	pdLeads  = "the PD that leads"
	pdOther  = "another PD"
)

func (a *arena) faults() (all []fault) {
	for _, whom := range []string{works, handsOn, store, otherOne, pdLeads, pdOther} {
		all = append(all, fault{whom, "killed", false}, fault{whom, "frozen", false}, fault{whom, "cut off", true}, fault{whom, "lost", true}, fault{whom, "parted", true})
	}
	all = append(all, fault{pdLeads, "relieved", false})
	return slices.DeleteFunc(all, func(f fault) bool {
		return f.whole && a.network == nil || !strings.Contains(f.whom+" is "+f.what, *chaosOnly)
	})
}

// disturb disturbs one process after the other, each in each way before it comes again.
func (a *arena) disturb(l *work, random *rand.Rand) {
	t := a.t
	t.Helper()
	time.Sleep(3 * restTime)
	l.times.rest(3 * restTime)
	t.Logf("undisturbed, %s", l.times.quiet())
	told := map[fault][]recovery{}
	began := time.Now()
	for n := 0; time.Since(began) < *disturbed && !t.Failed(); n++ {
		all := a.faults()
		random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		for i := 0; i < len(all) && time.Since(began) < *disturbed && !t.Failed(); i++ {
			lasts := shortFault
			if (i+n)%2 == 1 {
				lasts = longFault
			}
			if r, ok := a.befall(all[i], lasts, l); ok {
				told[all[i]] = append(told[all[i]], r)
			}
		}
	}
	tellRecoveries(t, told)
}

// befall has a fault happen and end, and waits until all is well.
func (a *arena) befall(f fault, lasts time.Duration, l *work) (r recovery, ok bool) {
	t := a.t
	t.Helper()
	name, err := a.find(f.whom)
	if err != nil {
		t.Logf("%s, %s: it is not found: %v", f.whom, f.what, err)
		time.Sleep(restTime)
		return r, false
	}
	began := time.Now()
	undo, err := a.begin(f, name)
	if err != nil {
		t.Errorf("%s, %s: %v", f.whom, f.what, err)
		return r, false
	}
	time.Sleep(lasts)
	if err := undo(); err != nil {
		t.Errorf("%s, %s: undo: %v", f.whom, f.what, err)
		return r, false
	}
	ended := time.Now()
	for time.Since(ended) < backLimit {
		time.Sleep(restTime / 5)
		a.lookAfter()
		if l.times.isBack(time.Now()) && time.Since(ended) > restTime {
			break
		}
		if since := l.times.silence(); since > deadTime {
			t.Errorf("%s, %s: nothing was answered for %v", f.whom, f.what, since)
			return r, false
		}
	}
	time.Sleep(restTime)
	l.times.rest(restTime)
	r = l.times.recovery(began, ended, time.Now())
	t.Logf("%s (%s) is %s for %v: %v", f.whom, name, f.what, lasts, r)
	return r, true
}

// find is the name of the process that a fault is for.
func (a *arena) find(whom string) (string, error) {
	switch whom {
	case works, handsOn:
		return a.findServer(whom == works)
	case store, otherOne:
		leads, err := a.cluster.StoreOf("ebb")
		if whom == store || err != nil {
			return leads, err
		}
		return except(a.cluster.Stores(), leads), nil
	}
	leads, err := a.cluster.PDLeader()
	if whom == pdLeads || err != nil {
		return leads, err
	}
	return except(a.cluster.PDs(), leads), nil
}

func except(all []string, one string) string {
	others := slices.DeleteFunc(slices.Clone(all), func(name string) bool { return name == one })
	return others[rand.IntN(len(others))]
}

// findServer finds the server that works, or another: whichever is asked, that one answers.
func (a *arena) findServer(that bool) (string, error) {
	ctx, cancel := context.WithTimeout(a.t.Context(), 10*time.Second)
	defer cancel()
	c, err := mongo.Connect(options.Client().ApplyURI(a.servers[0].URI("directConnection=true")))
	if err != nil {
		return "", err
	}
	defer func() { _ = c.Disconnect(context.Background()) }()
	var status struct{ PID int }
	if err := c.Database("admin").RunCommand(ctx, bson.D{{Key: "serverStatus", Value: 1}}).Decode(&status); err != nil {
		return "", err
	}
	var all []string
	name := ""
	for _, s := range a.servers {
		all = append(all, s.name)
		if s.PID() == status.PID {
			name = s.name
		}
	}
	switch {
	case name == "":
		return "", fmt.Errorf("the process %d is none of the servers", status.PID)
	case that:
		return name, nil
	}
	return except(all, name), nil
}

func (a *arena) server(name string) *server {
	for _, s := range a.servers {
		if s.name == name {
			return s
		}
	}
	return nil
}

// begin has a fault befall a process. undo ends it.
func (a *arena) begin(f fault, name string) (undo func() error, err error) {
	s := a.server(name)
	switch f.what {
	case "killed":
		a.killed[name] = true
		defer func() {
			end := undo
			undo = func() error { defer delete(a.killed, name); return end() }
		}()
		if s != nil {
			s.Kill()
			return func() error { return s.start(a.t) }, nil
		}
		a.cluster.Kill(name)
		return func() error { return a.cluster.Restart(name) }, nil
	case "frozen":
		if s != nil {
			pid := s.PID()
			return func() error { return syscall.Kill(pid, syscall.SIGCONT) }, syscall.Kill(pid, syscall.SIGSTOP)
		}
		return func() error { return a.cluster.Thaw(name) }, a.cluster.Freeze(name)
	case "cut off":
		m := a.places[name]
		return m.Join, m.Cut()
	case "lost":
		m := a.places[name]
		return m.Find, m.Lose()
	case "parted":
		m, others := a.places[name], a.others(name)
		return func() error { return m.Meet(others...) }, m.Part(others...)
	default: // relieved
		return func() error { return nil }, a.cluster.MoveLead(except(a.cluster.PDs(), name))
	}
}

// others are whom one is parted from that others still reach: a server from everybody but clients, a store from stores and placement drivers, and a
// placement driver from its like.
func (a *arena) others(name string) (machines []*network.Machine) {
	var names []string
	switch {
	case strings.HasPrefix(name, "ebb"):
		return a.network.Machines
	case strings.HasPrefix(name, "store"):
		names = slices.Concat(a.cluster.Stores(), a.cluster.PDs())
	default:
		names = a.cluster.PDs()
	}
	for _, other := range names {
		machines = append(machines, a.places[other])
	}
	return machines
}

// lookAfter starts again what has ended by itself. A server must not, nor a placement driver; the test double of a store does.
func (a *arena) lookAfter() {
	for _, s := range a.servers {
		if how := s.Crashed(); how != "" && !a.killed[s.name] {
			a.t.Errorf("%s has ended: %s\n%s", s.name, how, s.Log())
			noError(a.t, s.start(a.t))
		}
	}
	for _, name := range slices.Concat(a.cluster.Stores(), a.cluster.PDs()) {
		how := a.cluster.Ended(name)
		if how == "" || a.killed[name] {
			continue
		}
		a.ended[name]++
		if strings.HasPrefix(name, "pd") {
			a.t.Errorf("%s has ended: %s", name, how)
		} else {
			a.t.Logf("%s has ended by itself, and is started again: %s", name, how)
		}
		noError(a.t, a.cluster.Restart(name))
	}
}
