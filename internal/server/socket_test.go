//go:build unix

package server

import (
	"context"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/serverlog"
)

// folder is one whose name is short enough for sockets in it.
func folder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "ebb")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func (s *served) dialSocket(path string) *client {
	s.t.Helper()
	c, err := net.Dial("unix", path)
	if err != nil {
		s.t.Fatal(err)
	}
	return newClient(s.t, c)
}

// TestSocket: a server listens on a Unix domain socket that has its port in its name, and leaves nothing of it.
func TestSocket(t *testing.T) {
	dir := folder(t)
	var log lines
	s := start(t, Options{Sockets: []Socket{{dir + "/", 0o700}, {filepath.Join(dir, "other.sock"), 0o777}}, Log: serverlog.New(&log, 0).For("NETWORK")}, handlerFunc(func(_ context.Context, c *Conn, _ *Request) Reply {
		return Reply{Body: bson.Build().String("remote", c.Remote()).String("local", c.Local()).Doc()}
	}))
	path := filepath.Join(dir, "mongodb-"+strconv.Itoa(s.Addr().(*net.TCPAddr).Port)+".sock")
	for path, mode := range map[string]fs.FileMode{path: 0o700, filepath.Join(dir, "other.sock"): 0o777} {
		info, err := os.Lstat(path)
		if err != nil || info.Mode() != fs.ModeSocket|mode {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
		want(t, s.dialSocket(path).ask(`{ ping: 1 }`), `{ remote: "anonymous unix socket:27017", local: "`+path+`" }`)
	}
	log.has(`"remote":"anonymous unix socket:27017"`)
	if len(s.Addrs()) != 3 {
		t.Error(s.Addrs())
	}
	s.stop()
	<-s.ended // nothing runs, so it need not be given up by the clock
	if s.err != nil {
		t.Error(s.err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%v is left, %v", left, err)
	}
}

// TestSocketsThatAreThere: one that nobody listens on makes room; what is another's, or no socket, stays.
func TestSocketsThatAreThere(t *testing.T) {
	dir := folder(t)
	path := filepath.Join(dir, "s.sock")
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Bind(fd, &syscall.SockaddrUnix{Name: path}); err != nil {
		t.Fatal(err)
	}
	syscall.Close(fd) // as a server that was killed leaves it
	first, err := listenSocket(t.Context(), path, 0o700)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := listenSocket(t.Context(), path, 0o700); err != errInUse {
		t.Errorf("a second one: %v", err)
	}
	if err := os.Rename(path, path+".moved"); err != nil {
		t.Fatal(err)
	}
	second, err := listenSocket(t.Context(), path, 0o700)
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(path); err != nil {
		t.Errorf("the first has removed the socket of the second: %v", err)
	}
	second.Close()

	for _, no := range []struct{ path, want string }{
		{filepath.Join(dir, "none", "s.sock"), "no such file"},
		{filepath.Join(dir, strings.Repeat("x", 200)), "invalid argument"},
		{dir, "no socket"},
	} {
		if _, err := listenSocket(t.Context(), no.path, 0o700); err == nil || !strings.Contains(err.Error(), no.want) {
			t.Errorf("%s: %v", no.path, err)
		}
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(file, link); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{file, link} {
		if _, err := listenSocket(t.Context(), path, 0o700); err == nil {
			t.Errorf("%s is a socket", path)
		}
		if b, err := os.ReadFile(path); err != nil || string(b) != "x" {
			t.Errorf("%s: %q, %v", path, b, err)
		}
	}
}

// TestSocketOfAnotherServer: two servers have one port on two addresses; the second does without the socket.
func TestSocketOfAnotherServer(t *testing.T) {
	dir := folder(t)
	s := start(t, Options{Sockets: []Socket{{dir + "/", 0o700}}}, echo)
	port := s.Addr().(*net.TCPAddr).Port
	var log lines
	listeners, err := listenSockets(t.Context(), s.listeners[:1], []Socket{{dir + "/", 0o700}}, port, serverlog.New(&log, 0).For("NETWORK"))
	if err != nil || len(listeners) != 1 {
		t.Errorf("%v, %v", listeners, err)
	}
	log.has("Another server listens on the Unix domain socket of this port")
	want(t, s.dialSocket(filepath.Join(dir, socketName(port))).ask(`{ ping: 1 }`), `{ body: { ping: 1 }, ok: 1.0 }`)
}

// TestSocketWithoutAddresses: a server that listens on sockets alone calls its socket by the port that it was given.
func TestSocketWithoutAddresses(t *testing.T) {
	dir := folder(t)
	listeners, err := listenSockets(t.Context(), nil, []Socket{{dir + "/", 0o700}}, 27018, serverlog.New(io.Discard, 0).For("NETWORK"))
	if err != nil || len(listeners) != 1 {
		t.Fatalf("%v, %v", listeners, err)
	}
	if got, want := listeners[0].Addr().String(), filepath.Join(dir, "mongodb-27018.sock"); got != want {
		t.Errorf("it listens on %s, not on %s", got, want)
	}
	if err := listeners[0].Close(); err != nil {
		t.Error(err)
	}
}
