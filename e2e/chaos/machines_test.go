package chaos

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
)

// machines are network namespaces on one bridge, each with a server. Their addresses are 10.213.n.i, of a net of this process's own.
type machines struct {
	t    *testing.T
	net  string
	name string
	path string
	all  [3]*machine
}

type machine struct {
	m     *machines
	index int
	dir   string
	space string // its namespace
	link  string // its end of the cable on the bridge
	log   string // the file that the server writes its log to

	mu      sync.Mutex // guards all below
	process *exec.Cmd
	gone    chan struct{}
	own     *mongo.Client
}

const port = "27017"

// logShown is how many bytes of a log are shown when something fails.
const logShown = 8 << 10

// build makes the machines, or skips the test where the kernel does not let it.
func build(t *testing.T, path string) *machines {
	t.Helper()
	id := freeNetwork(t)
	m := &machines{t: t, net: fmt.Sprintf("10.213.%d", id), name: fmt.Sprintf("ebb%d", id), path: path}
	bridge := m.name + "br"
	if err := m.run("ip", "link", "add", bridge, "type", "bridge"); err != nil {
		t.Skip("network namespaces cannot be made here: ", err)
	}
	t.Cleanup(func() { _ = m.run("ip", "link", "del", bridge) })
	m.must("ip", "addr", "add", m.net+".254/24", "dev", bridge)
	m.must("ip", "link", "set", bridge, "up")
	for i := range m.all {
		v := &machine{m: m, index: i, dir: t.TempDir(), space: fmt.Sprintf("%sn%d", m.name, i), link: fmt.Sprintf("%sv%d", m.name, i),
			log: filepath.Join(t.TempDir(), "log")}
		m.all[i] = v
		inside := v.link + "i"
		if err := m.run("ip", "netns", "add", v.space); err != nil {
			t.Skip("network namespaces cannot be made here: ", err)
		}
		t.Cleanup(func() {
			v.kill()
			if text, err := os.ReadFile(v.log); err == nil && t.Failed() {
				t.Logf("the end of member %d's log:\n%s", v.index, text[max(0, len(text)-logShown):])
			}
			_ = m.run("ip", "link", "del", v.link) // that of a namespace goes some time after it
			_ = m.run("ip", "netns", "del", v.space)
			_ = m.run("umount", v.dir)
		})
		m.must("ip", "link", "add", v.link, "type", "veth", "peer", "name", inside)
		m.must("ip", "link", "set", inside, "netns", v.space)
		m.must("ip", "link", "set", v.link, "master", bridge, "up")
		m.must("ip", "-n", v.space, "addr", "add", v.address()+"/24", "dev", inside)
		m.must("ip", "-n", v.space, "link", "set", inside, "up")
		m.must("ip", "-n", v.space, "link", "set", "lo", "up")
	}
	m.must("mount", "-t", "tmpfs", "-o", "size=1200m", "tmpfs", m.all[2].dir) // so that its disk can be full
	return m
}

// networks is how many there can be at once.
const networks = 200

// freeNetwork is the number of a network that nobody has, nor has left behind.
func freeNetwork(t *testing.T) int {
	t.Helper()
	for i := range networks {
		id := (os.Getpid() + i) % networks
		links, err := filepath.Glob(fmt.Sprintf("/sys/class/net/ebb%d[bv]*", id))
		spaces, err2 := filepath.Glob(fmt.Sprintf("/run/netns/ebb%dn*", id))
		if err := errors.Join(err, err2); err != nil {
			t.Fatal(err)
		}
		if len(links)+len(spaces) == 0 {
			return id
		}
	}
	t.Fatal("all networks are taken")
	return 0
}

func (m *machines) run(command ...string) error {
	out, err := exec.Command(command[0], command[1:]...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%v: %w: %s", command, err, out)
	}
	return nil
}

func (m *machines) must(command ...string) {
	m.t.Helper()
	if err := m.run(command...); err != nil {
		m.t.Fatal(err)
	}
}

func (v *machine) address() string { return fmt.Sprintf("%s.%d", v.m.net, v.index+1) }
func (v *machine) host() string    { return v.address() + ":" + port }

// start starts the server. It returns when that listens, or has ended.
func (v *machine) start() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.process = exec.Command("ip", "netns", "exec", v.space, v.m.path, "serve", "--nounixsocket", "--bind_ip", v.address()+",127.0.0.1", "--port", port, "--dbpath", v.dir,
		"--replSet", "rs0", "--oplogSize", "100", "--consolePort", "0", "--advertise", v.host(), "--setParameter", "enableTestCommands=1")
	log, err := os.OpenFile(v.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	v.process.Stdout, v.process.Stderr = log, log
	if err := v.process.Start(); err != nil {
		return err
	}
	gone, process := make(chan struct{}), v.process
	v.gone = gone
	go func() { defer close(gone); _ = process.Wait() }()
	return nil
}

// runs says whether the server does.
func (v *machine) runs() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	select {
	case <-v.gone:
		return false
	default:
		return true
	}
}

func (v *machine) signal(s syscall.Signal) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.process != nil {
		_ = v.process.Process.Signal(s)
	}
}

func (v *machine) kill() {
	v.signal(syscall.SIGKILL)
	v.mu.Lock()
	gone := v.gone
	v.mu.Unlock()
	if gone != nil {
		<-gone
	}
}

// cut takes the cable out; from all, clients too. join puts it in again.
func (v *machine) cut() error  { return v.m.run("ip", "link", "set", v.link, "down") }
func (v *machine) join() error { return v.m.run("ip", "link", "set", v.link, "up") }

// deafen has the machine not reach the others, while clients reach it; hear ends that.
func (v *machine) deafen() error { return v.routes("add") }
func (v *machine) hear() error   { return v.routes("del") }

func (v *machine) routes(verb string) (err error) {
	for _, other := range v.m.all {
		if other != v {
			err = errors.Join(err, v.m.run("ip", "-n", v.space, "route", verb, "blackhole", other.address()+"/32"))
		}
	}
	return err
}

// fill leaves no room on the machine's disk; drain does again.
func (v *machine) fill() error {
	f, err := os.Create(filepath.Join(v.dir, "filler"))
	if err != nil {
		return err
	}
	defer f.Close()
	block := make([]byte, 1<<20)
	for {
		if _, err := f.Write(block); err != nil {
			return nil // it is full
		}
	}
}

// turn sets the machine's clock, so that it is off by so much until the server ends. Where it does not answer its clock stays as it is.
func (v *machine) turn(ctx context.Context, offset time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, turnTime)
	defer cancel()
	if err := v.client().Database("admin").RunCommand(ctx, bson.D{{Key: "ebbTurnClock", Value: 1}, {Key: "offsetMillis", Value: offset.Milliseconds()}}).Err(); err != nil {
		v.m.t.Logf("member %d, set its clock: %v", v.index, err)
	}
}

// turnTime is how long a member may take to set its clock.
const turnTime = 5 * time.Second

func (v *machine) drain() error { return os.Remove(filepath.Join(v.dir, "filler")) }

func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}
