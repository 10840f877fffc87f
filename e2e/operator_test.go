package e2e

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ebbdb/ebb/e2e/binary"
)

// TestOperator is what whoever runs the binary sees of it: flags, files, signals.
func TestOperator(t *testing.T) {
	path := binary.Build(t)
	for name, test := range map[string]func(*testing.T, string){
		"refusals":          refusals,
		"foreign directory": foreignDirectory,
		"stop and start":    stopAndStart,
		"config file":       configFile,
		"in memory":         inMemory,
	} {
		t.Run(name, func(t *testing.T) { test(t, path) })
	}
}

// refusals: what cannot be served is said in one line, with an exit status, and nothing is touched.
func refusals(t *testing.T, path string) {
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	busyPort := strconv.Itoa(busy.Addr().(*net.TCPAddr).Port)
	held := t.TempDir()
	holder := binary.Start(t, path, "--dbpath", held)

	for _, c := range []struct {
		name    string
		args    []string
		mention string // the one line must say this
	}{
		{"unknown flag", []string{"--dbpth", "x"}, "dbpth"},
		{"unknown verb", []string{"srve"}, "srve"},
		{"an argument too many", []string{"serve", "now"}, "now"},
		{"port out of range", []string{"--port", "70000"}, "70000"},
		{"port is no number", []string{"--port", "http"}, "http"},
		{"busy port", []string{"--port", busyPort}, busyPort},
		{"address that is not ours", []string{"--bind_ip", "192.0.2.1"}, "192.0.2.1"},
		{"missing config", []string{"--config", "nowhere.conf"}, "nowhere.conf"},
		{"config that is no YAML", []string{"--config", write(t, "net: [")}, "YAML"},
		{"config with an unknown key", []string{"--config", write(t, "net:\n  prt: 1\n")}, "prt"},
		{"unknown storage engine", []string{"--storageEngine", "mmapv1"}, "mmapv1"},
		{"unknown parameter", []string{"--setParameter", "noSuchParameter=1"}, "noSuchParameter"},
		{"parameter out of bounds", []string{"--setParameter", "ttlMonitorSleepSecs=0"}, "ttlMonitorSleepSecs"},
		{"dbpath is a file", []string{"--dbpath", write(t, "x")}, "ebb.conf"},
		{"dbpath cannot be made", []string{"--dbpath", filepath.Join(os.DevNull, "data")}, os.DevNull},
		{"dbpath in use", []string{"--dbpath", held}, strconv.Itoa(holder.PID())},
		{"log that cannot be written", []string{"--storageEngine", "inMemory", "--logpath", filepath.Join(os.DevNull, "log")}, os.DevNull},
	} {
		t.Run(c.name, func(t *testing.T) {
			args := c.args
			if strings.HasPrefix(args[0], "-") {
				args = append([]string{"serve"}, args...)
				if args[1] != "--port" {
					args = append(args, "--port", "0")
				}
			}
			code, stdout, stderr := binary.Run(t, path, args...)
			said := stdout + stderr
			switch {
			case code == 0:
				t.Errorf("exit status 0:\n%s", said)
			case strings.Count(said, "\n") != 1 || !strings.Contains(said, c.mention):
				t.Errorf("want one line that mentions %q, got:\n%s", c.mention, said)
			}
		})
	}
}

// foreignDirectory: a directory with somebody else's files stays as it is.
func foreignDirectory(t *testing.T, path string) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "thesis.txt"), []byte("years of work"), 0o600); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := binary.Run(t, path, "serve", "--port", "0", "--dbpath", dir)
	if code == 0 || !strings.Contains(stderr, dir) {
		t.Errorf("exit status %d:\n%s%s", code, stdout, stderr)
	}
	if got := names(t, dir); fmt.Sprint(got) != "[thesis.txt]" {
		t.Errorf("the directory holds %v", got)
	}
}

// stopAndStart: SIGTERM ends the server in order although a client is connected, and the directory is free again.
func stopAndStart(t *testing.T, path string) {
	dir := filepath.Join(t.TempDir(), "made", "when", "missing")
	for range 2 {
		server := binary.Start(t, path, "--dbpath", dir)
		idle, err := net.Dial("tcp", server.Addr)
		if err != nil {
			t.Fatal(err)
		}
		defer idle.Close()
		begun := time.Now()
		if err := server.Stop(); err != nil {
			t.Fatalf("%v\n%s", err, server.Log())
		}
		if took := time.Since(begun); took > 12*time.Second {
			t.Errorf("stopping took %v", took)
		}
		if strings.Contains(strings.ToLower(server.Log()), "unclean") {
			t.Errorf("the directory was not left in order:\n%s", server.Log())
		}
	}
}

// configFile: mongod.conf's shape, and flags above it.
func configFile(t *testing.T, path string) {
	dir := t.TempDir()
	config := write(t, fmt.Sprintf(`
net:
  port: 1
  bindIp: 127.0.0.1
storage:
  dbPath: %q
setParameter:
  ttlMonitorSleepSecs: 7
`, dir))
	server := binary.Start(t, path, "--config", config) // with --port 0
	if strings.HasSuffix(server.Addr, ":1") {
		t.Error("the flag did not win over the file")
	}
	if len(names(t, dir)) == 0 {
		t.Errorf("nothing in the dbPath of the file:\n%s", server.Log())
	}
}

// inMemory: no file anywhere.
func inMemory(t *testing.T, path string) {
	t.Chdir(t.TempDir())
	server := binary.Start(t, path, "--storageEngine", "inMemory")
	if got := names(t, "."); len(got) != 0 {
		t.Errorf("files were made: %v\n%s", got, server.Log())
	}
}

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ebb.conf")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}
