package e2e

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/ebbdb/ebb/e2e/binary"
)

// checklistLimit is for a command of the checklist on a busy machine; alone each ends within three seconds.
const checklistLimit = time.Minute

// TestChecklist goes through the checklist of docs/security.md, line by line as they stand there, in an empty folder: certificates, the first user, a
// server over TLS, two more users, what must not work, and what is to be seen afterwards. Passwords are typed in at a terminal. Only the port is another
// one, and the server is not bound to what others reach.
func TestChecklist(t *testing.T) {
	client{needs: append(node(), need{command: "openssl", what: "OpenSSL"}, need{command: "script", what: "script of util-linux, which gives a terminal"})}.require(t)
	page, err := os.ReadFile("../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	l := newChecklist(t)
	certificates, _, _ := strings.Cut(codeBlock(t, string(page), "## TLS"), "ebb serve ")
	for _, command := range commands(certificates) {
		l.succeeds(command.text)
	}
	var part string
	var tried int
	for _, command := range commands(codeBlock(t, string(page), "## Checklist")) {
		if command.title != "" {
			part = command.title
			continue
		}
		tried++
		begin := time.Now()
		switch {
		case strings.HasPrefix(command.text, "ebb serve "):
			l.serve(command.text)
		case strings.Contains(part, "must not work"):
			l.fails(command.text)
		case strings.HasPrefix(command.text, "mongosh "):
			l.shell(command.text, command.typed)
		default:
			l.succeeds(command.text)
		}
		t.Logf("%v: %s", time.Since(begin).Round(time.Millisecond), command.text)
	}
	if tried < 10 {
		t.Errorf("the page has %d commands", tried)
	}
	equal(t, len(l.refusals), 3)
	for i, want := range []string{"MongoServerSelectionError", "requires authentication", "not authorized on admin"} {
		if !strings.Contains(l.refusals[i], want) {
			t.Errorf("what must not work is answered by\n%s\nwant %q", l.refusals[i], want)
		}
	}
	l.looksRight()
}

// codeBlock is the last block of code in the section of the page.
func codeBlock(t *testing.T, page, heading string) string {
	t.Helper()
	_, section, found := strings.Cut(page, "\n"+heading+"\n")
	section, _, _ = strings.Cut(section, "\n## ")
	parts := strings.Split(section, "\n```\n")
	if !found || len(parts) < 3 {
		t.Fatalf("docs/security.md has no section %q with a block of code", heading)
	}
	return parts[len(parts)-2]
}

// checkCommand is a command of the page with what is typed into it, or the title of a part.
type checkCommand struct {
	title, text string
	typed       []string
}

// commands reads a block of code: lines that go on, lines with "# " as titles, and with "> " as what is typed into the command before.
func commands(block string) (all []checkCommand) {
	for line := range strings.SplitSeq(strings.ReplaceAll(block, "\\\n", " "), "\n") {
		switch {
		case strings.TrimSpace(line) == "":
		case strings.HasPrefix(line, "# "):
			all = append(all, checkCommand{title: line})
		case strings.HasPrefix(line, "> "):
			last := &all[len(all)-1]
			last.typed = append(last.typed, strings.TrimPrefix(line, "> "))
		default:
			all = append(all, checkCommand{text: line})
		}
	}
	return all
}

// checklist is a folder in which commands are tried.
type checklist struct {
	t         *testing.T
	dir, port string
	env       []string
	passwords map[string]string // by user
	refusals  []string          // what was said to commands that must fail
}

func newChecklist(t *testing.T) *checklist {
	l := &checklist{t: t, dir: t.TempDir(), passwords: map[string]string{"program": "a program's", "keeper": "a keeper's"}}
	bin := filepath.Dir(binary.Build(t))
	shell, err := filepath.Abs(filepath.Join("node", mongosh))
	if err != nil {
		t.Fatal(err)
	}
	tools := t.TempDir() // bin is there from one run to the next
	if err := os.Symlink(shell, filepath.Join(tools, "mongosh")); err != nil {
		t.Fatal(err)
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, l.port, _ = net.SplitHostPort(free.Addr().String())
	_ = free.Close()
	l.env = append(os.Environ(), "PATH="+tools+string(os.PathListSeparator)+bin+string(os.PathListSeparator)+os.Getenv("PATH"), "HOME="+t.TempDir(), "TERM=dumb")
	return l
}

// command is a line of the page, ready to run.
func (l *checklist) command(ctx context.Context, text string) *exec.Cmd {
	text = strings.NewReplacer("--bind_ip_all", "--bind_ip localhost --nounixsocket --port "+l.port, "localhost/", "localhost:"+l.port+"/").Replace(text)
	cmd := exec.CommandContext(ctx, "bash", "-c", text)
	cmd.Dir, cmd.Env = l.dir, l.env
	return cmd
}

func (l *checklist) succeeds(text string) {
	l.t.Helper()
	if out, err := l.command(l.t.Context(), text).CombinedOutput(); err != nil {
		l.t.Fatalf("%s\n%v\n%s", text, err, out)
	}
}

// serve runs the server until the test ends, and waits until it takes connections.
func (l *checklist) serve(text string) {
	l.t.Helper()
	cmd := l.command(context.WithoutCancel(l.t.Context()), "exec "+text)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		l.t.Fatal(err)
	}
	gone := make(chan error, 1)
	go func() { gone <- cmd.Wait() }()
	l.t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := <-gone; err != nil && !l.t.Failed() {
			l.t.Errorf("the server ended with %v", err)
		}
	})
	for deadline := time.Now().Add(checklistLimit); ; time.Sleep(20 * time.Millisecond) {
		if conn, err := net.Dial("tcp", "127.0.0.1:"+l.port); err == nil {
			_ = conn.Close()
			return
		}
		select {
		case err := <-gone:
			gone <- err
			log, _ := os.ReadFile(filepath.Join(l.dir, "ebb.log"))
			l.t.Fatalf("the server ended: %v\n%s%s", err, said.String(), log)
		default:
		}
		if time.Now().After(deadline) {
			l.t.Fatalf("the server does not listen\n%s", said.String())
		}
	}
}

// fails runs a command that must not work, and keeps what was said.
func (l *checklist) fails(text string) {
	l.t.Helper()
	var said string
	var err error
	if user := userOf(text); user != "" {
		said, err = l.typeInto(text, l.dialogue(user, nil))
	} else {
		var out []byte
		out, err = l.command(l.t.Context(), text).CombinedOutput()
		said = string(out)
	}
	if err == nil {
		l.t.Errorf("%s\nworks:\n%s", text, said)
	}
	l.refusals = append(l.refusals, said)
}

// shell runs mongosh at a terminal.
func (l *checklist) shell(text string, typed []string) {
	l.t.Helper()
	if said, err := l.typeInto(text, l.dialogue(userOf(text), typed)); err != nil {
		l.t.Fatalf("%s\n%v\n%s", text, err, said)
	}
}

// userOf is the user in the address of a command, "" where there is none.
func userOf(text string) string {
	_, address, _ := strings.Cut(text, "mongodb://")
	user, _, found := strings.Cut(address, "@")
	if !found {
		return ""
	}
	return user
}

// turn is what is typed when something has been said.
type turn struct{ when, typed string }

// dialogue is one with mongosh: the password of the user, then lines and the passwords of the users that they make.
func (l *checklist) dialogue(user string, typed []string) (d []turn) {
	l.t.Helper()
	d = append(d, turn{"Enter password", l.password(user)})
	for _, line := range typed {
		d = append(d, turn{"> ", line})
		if _, name, makes := strings.Cut(line, `user: "`); makes {
			name, _, _ = strings.Cut(name, `"`)
			d = append(d, turn{"Enter password", l.password(name)}, turn{"ok: 1", ""})
		}
	}
	if len(typed) > 0 {
		d = append(d, turn{"> ", "exit"})
	}
	return d
}

// password is a user's: that of the first is in a file, as the page has it.
func (l *checklist) password(user string) string {
	l.t.Helper()
	if p, known := l.passwords[user]; known {
		return p
	}
	text, err := os.ReadFile(filepath.Join(l.dir, user+"-password"))
	if err != nil {
		l.t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

// typeInto runs a command at a terminal.
func (l *checklist) typeInto(text string, d []turn) (said string, err error) {
	l.t.Helper()
	inner := l.command(l.t.Context(), text)
	cmd := exec.CommandContext(l.t.Context(), "script", "--quiet", "--return", "--flush", "--command", inner.Args[2], os.DevNull)
	cmd.Dir, cmd.Env = inner.Dir, append(inner.Env, "SHELL=/bin/bash")
	in, err := cmd.StdinPipe()
	if err != nil {
		l.t.Fatal(err)
	}
	heard := &ear{}
	heard.turn = sync.NewCond(&heard.mu)
	cmd.Stdout, cmd.Stderr = heard, heard
	if err := cmd.Start(); err != nil {
		l.t.Fatal(err)
	}
	timer := time.AfterFunc(checklistLimit, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	ended := make(chan error, 1)
	go func() {
		ended <- cmd.Wait()
		heard.end()
	}()
	for _, next := range d {
		if !heard.waitFor(next.when) {
			break
		}
		if next.typed != "" {
			_, _ = io.WriteString(in, next.typed+"\n")
		}
	}
	err = <-ended
	_ = in.Close()
	return heard.text.String(), err
}

// ear takes what a command says.
type ear struct {
	mu    sync.Mutex // guards all below
	turn  *sync.Cond
	text  bytes.Buffer
	seen  int
	ended bool
}

func (e *ear) Write(p []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.text.Write(p)
	e.turn.Broadcast()
	return len(p), nil
}

func (e *ear) end() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ended = true
	e.turn.Broadcast()
}

// waitFor waits until the words have been said behind what was waited for before; false where the command has ended without.
func (e *ear) waitFor(words string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	for {
		if i := bytes.Index(e.text.Bytes()[e.seen:], []byte(words)); i >= 0 {
			e.seen += i + len(words)
			return true
		}
		if e.ended {
			return false
		}
		e.turn.Wait()
	}
}

// looksRight holds what the checklist leaves against what it is for.
func (l *checklist) looksRight() {
	t := l.t
	for _, name := range []string{"server.pem", "ca.key", "admin-password", "audit.json", "ebb.log"} {
		if info, err := os.Stat(filepath.Join(l.dir, name)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	uri := func(user string) string {
		return fmt.Sprintf("mongodb://%s@localhost:%s/?authSource=app&directConnection=true&tls=true&tlsCAFile=%s",
			url.UserPassword(user, l.passwords[user]), l.port, url.QueryEscape(filepath.Join(l.dir, "ca.pem")))
	}
	app := connect(t, uri("program")).Database("app")
	if _, err := app.Collection("c").InsertOne(t.Context(), bson.D{{Key: "a", Value: 1}}); err != nil {
		t.Errorf("the program cannot write: %v", err)
	}
	kept := connect(t, uri("keeper")).Database("app")
	if err := kept.RunCommand(t.Context(), bson.D{{Key: "ebbTTL", Value: 1}}).Err(); err != nil {
		t.Errorf("who looks after expiry does not see it: %v", err)
	}
	if err := kept.RunCommand(t.Context(), bson.D{{Key: "find", Value: "c"}}).Err(); err == nil {
		t.Error("who looks after expiry reads documents")
	}
	audit, err := os.ReadFile(filepath.Join(l.dir, "audit.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"atype" : "startup"`, `"user" : "program", "db" : "app", "roles" : [ { "role" : "readWrite"`, `"user" : "keeper", "db" : "app", "roles" : [ { "role" : "dbAdmin"`} {
		if !bytes.Contains(audit, []byte(want)) {
			t.Errorf("the audit log has no %s", want)
		}
	}
	for _, file := range []string{"audit.json", "ebb.log"} {
		text, _ := os.ReadFile(filepath.Join(l.dir, file))
		for _, user := range []string{"admin", "program", "keeper"} {
			if strings.Contains(string(text), l.password(user)) {
				t.Errorf("the password of %s is in %s", user, file)
			}
		}
	}
}
