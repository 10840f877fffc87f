package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/wire"
)

// binary is built once for all tests of the package.
var binary string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "ebb-cmd")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		if err := os.Chmod(dir, 0o755); err != nil { // a test runs it as another user
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		binary = filepath.Join(dir, "ebb")
		if out, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "%v\n%s", err, out)
			return 1
		}
		return m.Run()
	}())
}

// running is a server process that said where it listens.
type running struct {
	cmd     *exec.Cmd
	address string
	dbpath  string
	waits   logLine // what it said
	lines   *bufio.Scanner
	stderr  *bytes.Buffer
}

// startServer starts a server and returns when it waits for connections.
func startServer(t *testing.T, dir string, args ...string) *running {
	t.Helper()
	r := &running{cmd: exec.Command(binary, append([]string{"serve", "--nounixsocket", "--port", "0"}, args...)...), stderr: &bytes.Buffer{}}
	r.cmd.Dir, r.cmd.Stderr = dir, r.stderr
	stdout, err := r.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = r.cmd.Process.Kill()
		_ = r.cmd.Wait()
	})
	r.lines = bufio.NewScanner(stdout)
	for r.lines.Scan() {
		if l := parseLine(t, r.lines.Text()); l.Msg == "Waiting for connections" {
			r.address, r.dbpath, r.waits = l.Attr.Address, l.Attr.DBPath, l
			return r
		}
	}
	_ = r.cmd.Wait()
	t.Fatalf("the server did not start: %s", r.stderr)
	return nil
}

type logLine struct {
	Msg, Ctx string
	Attr     struct {
		Address, DBPath, Version, StorageEngine, SSL string
		Port                                         int
	}
}

func parseLine(t *testing.T, text string) logLine {
	t.Helper()
	var l logLine
	if err := json.Unmarshal([]byte(text), &l); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return l
}

// stop sends sig and returns the messages logged until the end.
func (r *running) stop(t *testing.T, sig os.Signal) []string {
	t.Helper()
	if err := r.cmd.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
	var messages []string
	for r.lines.Scan() {
		messages = append(messages, parseLine(t, r.lines.Text()).Msg)
	}
	if err := r.cmd.Wait(); err != nil {
		t.Errorf("ended with %v: %s", err, r.stderr)
	}
	return messages
}

func ping(t *testing.T, address string) {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	codec, err := wire.NewCodec(nil)
	if err != nil {
		t.Fatal(err)
	}
	out := wire.Outgoing{OpCode: wire.OpMsg, Compressor: wire.Uncompressed, Body: bson.MustDoc(`{ ping: 1, $db: "admin" }`)}
	if _, err := codec.NewWriter(c).WriteMessage(out); err != nil {
		t.Fatal(err)
	}
	m, err := codec.NewReader(c).ReadMessage()
	if err != nil {
		t.Fatal(err)
	}
	if ok := m.Body.Lookup("ok"); ok.Type != bson.TypeDouble || ok.Double() != 1 {
		t.Errorf("ping was answered %s", m.Body.Value())
	}
}

// failing runs a command that must fail with one line on standard error that has want in it, and the exit status.
func failing(t *testing.T, cmd *exec.Cmd, status int, want string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	exit, ok := err.(*exec.ExitError)
	if !ok || exit.ExitCode() != status {
		t.Fatalf("%v: ended with %v, wanted status %d\n%s%s", cmd.Args, err, status, &stdout, &stderr)
	}
	text := stderr.String()
	if strings.Count(text, "\n") != 1 || !strings.HasPrefix(text, "ebb: ") || !strings.Contains(text, want) {
		t.Errorf("%v: said %q, wanted one line with %q", cmd.Args, text, want)
	}
}

func TestServesAndStops(t *testing.T) {
	for _, sig := range []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		dir := t.TempDir()
		r := startServer(t, dir)
		if want := filepath.Join(dir, "data"); r.dbpath != want {
			t.Errorf("dbpath %s, not %s", r.dbpath, want)
		}
		ping(t, r.address)
		if got := r.stop(t, sig); got[len(got)-1] != "Now exiting" {
			t.Errorf("%v: %q", sig, got)
		}
		// Again on the same data, which was left in order.
		r = startServer(t, dir)
		ping(t, r.address)
		r.stop(t, sig)
	}
}

func TestInMemoryTouchesNoDisk(t *testing.T) {
	dir := t.TempDir()
	r := startServer(t, dir, "--storageEngine", "inMemory", "--dbpath", "data")
	ping(t, r.address)
	r.stop(t, syscall.SIGTERM)
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("there is %v: %v", entries, err)
	}
}

func TestConfigFileAndLogFile(t *testing.T) {
	dir := t.TempDir()
	log := filepath.Join(dir, "ebb.log")
	conf := filepath.Join(dir, "ebb.conf")
	text := fmt.Sprintf("storage:\n  dbPath: %s/db\nsystemLog:\n  destination: file\n  path: %s\n  quiet: true\nnet:\n  port: 1\n", dir, log)
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(log, []byte("before\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	// The port of the command line wins. The log is not on standard output: the address is read from the file.
	cmd := exec.Command(binary, "serve", "--nounixsocket", "-f", conf, "--port", "0", "--logappend")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	defer func() { _ = cmd.Process.Kill() }()
	address := ""
	for address == "" {
		select {
		case err := <-ended:
			t.Fatalf("the server ended: %v", err)
		case <-time.After(10 * time.Millisecond):
		}
		content, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		after, ok := strings.CutPrefix(string(content), "before\n")
		if !ok {
			t.Fatalf("the log was not appended to: %s", content)
		}
		for line := range strings.Lines(after) {
			if strings.HasSuffix(line, "\n") && strings.Contains(line, "Waiting for connections") {
				address = parseLine(t, line).Attr.Address
			}
		}
	}
	ping(t, address)
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(log)
	if err != nil || strings.Contains(string(content), "Connection accepted") || !strings.Contains(string(content), "Now exiting") {
		t.Errorf("%v: %s", err, content)
	}
}

func TestWhatStartsServersReadsThePort(t *testing.T) {
	r := startServer(t, t.TempDir())
	w := r.waits
	if w.Ctx != "listener" || w.Attr.SSL != "off" || w.Attr.Address != net.JoinHostPort("127.0.0.1", strconv.Itoa(w.Attr.Port)) {
		t.Errorf("%+v", w)
	}
}

func TestSecondServerOnTheSameDirectory(t *testing.T) {
	dir := t.TempDir()
	r := startServer(t, dir)
	second := exec.Command(binary, "serve", "--nounixsocket", "--port", "0")
	second.Dir = dir
	failing(t, second, exitFailed, fmt.Sprintf("the process with pid %d, is already running on the %s directory", r.cmd.Process.Pid, r.dbpath))
	ping(t, r.address)
	r.stop(t, syscall.SIGTERM)
}

// TestKilledServerLeavesTheDirectoryFree: the kernel gives the lock back.
func TestKilledServerLeavesTheDirectoryFree(t *testing.T) {
	dir := t.TempDir()
	r := startServer(t, dir)
	if err := r.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = r.cmd.Wait()
	r = startServer(t, dir)
	ping(t, r.address)
	r.stop(t, syscall.SIGTERM)
}

func TestBusyPort(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	dir := t.TempDir()
	cmd := exec.Command(binary, "serve", "--nounixsocket", "--port", strconv.Itoa(l.Addr().(*net.TCPAddr).Port), "--logpath", "log")
	cmd.Dir = dir
	failing(t, cmd, exitNetwork, l.Addr().String()+": bind: address already in use")
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("it left %v: %v", entries, err)
	}
}

// tree is every file below dir with its content.
func tree(t *testing.T, dir string) string {
	t.Helper()
	var out strings.Builder
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		fmt.Fprintln(&out, path)
		if e.Type().IsRegular() {
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			fmt.Fprintf(&out, "  %q\n", text)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestBadStarts has what must be refused with one line, a status, and nothing touched.
func TestBadStarts(t *testing.T) {
	for _, c := range []struct {
		args   string
		status int
		want   string
	}{
		{"serve --prot 1", exitBadOptions, "unknown flag: --prot"},
		{"serve --port", exitBadOptions, "flag needs an argument: --port"},
		{"serve --port many", exitBadOptions, `"many" is not a whole number`},
		{"serve --port 70000", exitBadOptions, "70000 is not between 0 and 65535"},
		{"serve now", exitBadOptions, `unknown command "now"`},
		{"server", exitBadOptions, `unknown command "server"`},
		{"version 1", exitBadOptions, `unknown command "1" for "ebb version"; try 'ebb version --help'`},
		{"--prot 1", exitBadOptions, "try 'ebb --help'"},
		{"backup --prot 1", exitBadOptions, "unknown flag: --prot; try 'ebb backup --help'"},
		{"restore --prot 1", exitBadOptions, "try 'ebb restore --help'"},
		{"user bogus", exitBadOptions, `unknown command "bogus" for "ebb user"; try 'ebb user --help'`},
		{"user add", exitBadOptions, "try 'ebb user add --help'"},
		{"help nosuch", exitBadOptions, `unknown command "nosuch" for "ebb"; try 'ebb --help'`},
		{"help user bogus", exitBadOptions, `unknown command "bogus" for "ebb user"; try 'ebb --help'`},
		{"serve --storageEngine rocksdb", exitBadOptions, "unknown storage engine: rocksdb"},
		{"serve --setParameter x", exitBadOptions, "--setParameter needs name=value"},
		{"serve --config none.conf", exitBadOptions, "none.conf: no such file or directory"},
		{"serve --config foreign", exitBadOptions, "is a directory"},
		{"serve --config bad.conf", exitBadOptions, "Error parsing YAML config file"},
		{"serve --config unknown.conf", exitBadOptions, "Unrecognized option: net.prot"},
		{"serve --port 0 --bind_ip 192.0.2.1", exitNetwork, "192.0.2.1:0: bind: cannot assign requested address"},
		{"serve --port 0 --bind_ip no.such.host.invalid", exitFailed, "no.such.host.invalid"},
		{"serve --port 0 --dbpath foreign", exitFailed, `is not empty and not Ebb's (it holds "precious" and no file EBB): it is left alone`},
		{"serve --port 0 --dbpath file", exitFailed, "is not a directory"},
		{"serve --port 0 --dbpath file/below", exitFailed, "not a directory"},
		{"serve --port 0 --dbpath newer", exitFailed, "has format 99"},
		{"serve --port 0 --dbpath foreign --logpath new.log", exitFailed, "is left alone"},
		{"serve --port 0 --dbpath foreign --logpath old.log", exitFailed, "is left alone"},
		{"serve --port 0 --logpath none/log", exitFailed, "none/log: no such file or directory"},
		{"serve --port 0 --logpath foreign", exitFailed, "foreign: is a directory"},
	} {
		t.Run(c.args, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for name, text := range map[string]string{
				"foreign/precious": "data", "file": "text", "newer/EBB": "Ebb data directory, format 99\n",
				"newer/ebb.lock": "", "bad.conf": "net: {", "unknown.conf": "net:\n  prot: 1\n", "old.log": "old\n",
			} {
				if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			before := tree(t, dir)
			cmd := exec.Command(binary, strings.Fields(c.args)...)
			cmd.Dir = dir
			failing(t, cmd, c.status, c.want)
			if after := tree(t, dir); after != before {
				t.Errorf("touched: before\n%safter\n%s", before, after)
			}
		})
	}
}

// TestUnwritableDirectory runs as another user where the test runs as root, who may write everywhere.
func TestUnwritableDirectory(t *testing.T) {
	dir, err := os.MkdirTemp("", "ebb-cmd")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o555); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		dir:                        "is not writable: permission denied",
		filepath.Join(dir, "data"): "cannot be made: permission denied",
	} {
		cmd := exec.Command(binary, "serve", "--nounixsocket", "--port", "0", "--dbpath", path)
		cmd.Dir = "/"
		if os.Geteuid() == 0 {
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		}
		failing(t, cmd, exitFailed, want)
	}
}

func TestVersion(t *testing.T) {
	for _, how := range []string{"version", "--version"} {
		out, err := exec.Command(binary, how).Output()
		if err != nil || !strings.HasPrefix(string(out), "ebb v") || strings.Count(string(out), "\n") != 1 {
			t.Errorf("%s: %q: %v", how, out, err)
		}
	}
}
