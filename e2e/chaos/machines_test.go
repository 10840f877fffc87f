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

	"github.com/ebbdb/ebb/e2e/network"
)

// machines are those of a network, each with a server.
type machines struct {
	t       testing.TB
	network *network.Network
	path    string
	all     [3]*machine
}

type machine struct {
	*network.Machine
	m     *machines
	index int
	dir   string
	log   string // the file that the server writes its log to
	// hangs says that the machine's disk can hang.
	hangs bool

	mu      sync.Mutex // guards all below
	process *exec.Cmd
	gone    chan struct{}
	own     *mongo.Client
}

const port = "27017"

// logShown is how many bytes of a log are shown when something fails.
const logShown = 8 << 10

// build makes the machines, or skips the test where the kernel does not let it.
func build(t testing.TB, path string) *machines {
	t.Helper()
	m := &machines{t: t, path: path}
	var err error
	if m.network, err = network.New(len(m.all)); err != nil {
		t.Skip("network namespaces cannot be made here: ", err)
	}
	t.Cleanup(func() { _ = m.network.Close() })
	for i := range m.all {
		v := &machine{Machine: m.network.Machines[i], m: m, index: i, dir: t.TempDir(), log: filepath.Join(t.TempDir(), "log")}
		m.all[i] = v
		t.Cleanup(func() {
			v.kill()
			if text, err := os.ReadFile(v.log); err == nil && t.Failed() {
				t.Logf("the end of member %d's log:\n%s", v.index, text[max(0, len(text)-logShown):])
			}
		})
	}
	m.all[2].mount()
	return m
}

func (v *machine) host() string { return v.Address() + ":" + port }

// start starts the server. It returns when that listens, or has ended.
func (v *machine) start() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.process = exec.Command("ip", append(v.Prefix()[1:], v.m.path, "serve", "--nounixsocket", "--bind_ip", v.Address()+",127.0.0.1", "--port", port, "--dbpath", v.dir,
		"--replSet", "rs0", "--oplogSize", "100", "--consolePort", "0", "--advertise", v.host(), "--setParameter", "enableTestCommands=1")...)
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

// fault is what befalls a machine from begin to end; longer is how many times as long as usual it may last in long runs.
type fault struct {
	begin, end func() error
	longer     int
}

func (v *machine) faults() map[string]fault {
	return map[string]fault{"cut": {v.Cut, v.Join, 1}, "lose": {v.Lose, v.Find, 10}, "deafen": {v.deafen, v.hear, 1}, "fill": {v.fill, v.drain, 1}, "hang": {v.freeze, v.thaw, 6}}
}

// deafen has the machine not reach the others, while clients reach it; hear ends that.
func (v *machine) deafen() error { return v.Part(v.m.network.Machines...) }
func (v *machine) hear() error   { return v.Meet(v.m.network.Machines...) }

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

// diskBytes is how large the disk of a machine is that can be full.
const diskBytes = 1200 << 20

// mount gives the machine a disk of its own, which can be full, and hang where the kernel makes disks of files. The file is in memory.
func (v *machine) mount() {
	t := v.m.t
	t.Helper()
	folder := t.TempDir()
	run := func(command ...string) error {
		if out, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", command, err, out)
		}
		return nil
	}
	unmount := func(dir string) { t.Cleanup(func() { _ = v.thaw(); v.kill(); _ = run("umount", "--lazy", dir) }) }
	if err := run("mount", "-t", "tmpfs", "-o", fmt.Sprint("size=", diskBytes+16<<20), "tmpfs", folder); err != nil {
		t.Fatal(err)
	}
	unmount(folder)
	file := filepath.Join(folder, "disk")
	err := errors.Join(run("truncate", "-s", fmt.Sprint(diskBytes), file), run("mkfs.ext4", "-q", "-m", "0", file))
	if err == nil {
		err = run("mount", "-o", "loop", file, v.dir)
	}
	if err == nil {
		v.hangs = true
	} else {
		t.Log("no disk hangs, since there are none of files here: ", err)
		if err := errors.Join(os.RemoveAll(file), run("mount", "--bind", folder, v.dir)); err != nil {
			t.Fatal(err)
		}
	}
	unmount(v.dir)
}

// freeze has the machine's disk hang: whoever writes to it waits, until thaw. Nothing fails.
func (v *machine) freeze() error {
	if err := exec.Command("mountpoint", "-q", v.dir).Run(); err != nil { // or this machine's own disk would hang
		return fmt.Errorf("%s is no disk of its own: %w", v.dir, err)
	}
	return exec.Command("fsfreeze", "--freeze", v.dir).Run()
}

func (v *machine) thaw() error {
	if !v.hangs {
		return nil
	}
	return exec.Command("fsfreeze", "--unfreeze", v.dir).Run()
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
