// Package e2e lets real clients, each in its own language, talk to the real binary. One server serves them all at once,
// each in databases of its own, so that the seconds which prove an expiry are waited for once.
package e2e

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/ebbdb/ebb/e2e/binary"
)

// clientLimit is for the slowest client on a busy machine; alone each ends within half a minute.
const clientLimit = 4 * time.Minute

// client is a program in another language. Its output says "ok NAME" or "not ok NAME" for each check and ends with
// "1..N", so that a script which stops half-way cannot pass.
type client struct {
	name  string
	needs []need
	dir   string
	argv  []string
	stdin string        // a file in dir to be typed in; its output is compared with the expectations beside it
	limit time.Duration // 0 is clientLimit
}

// need is something that may be missing on a machine: a command, or a folder that e2e/install.sh makes.
type need struct {
	command string
	folder  string
	what    string
}

func node() []need {
	return []need{{command: "node", what: "Node.js"}, {folder: "node/node_modules/.ready", what: "the npm packages"}}
}

var mongosh = filepath.Join("node_modules", ".bin", "mongosh")

func shell(script string) []string {
	return []string{mongosh, "--quiet", "--norc", "$URI", "--file", filepath.Join("mongosh", script)}
}

func clients() []client {
	return []client{
		{name: "mongosh/founding", needs: node(), dir: "node", argv: shell("founding.js")},
		{name: "mongosh/differences", needs: node(), dir: "node", argv: shell("differences.js")},
		{name: "mongosh/life", needs: node(), dir: "node", argv: shell("life.js")},
		{name: "mongosh/typed", needs: node(), dir: "node", argv: []string{mongosh, "--quiet", "--norc", "$URI"}, stdin: "mongosh/typed.txt"},
		{name: "node/driver", needs: node(), dir: "node", argv: []string{"node", "driver.mjs"}},
		{name: "node/mongoose", needs: node(), dir: "node", argv: []string{"node", "mongoose.mjs"}},
		{name: "node/sessions", needs: node(), dir: "node", argv: []string{"node", "sessions.mjs"}},
		python("pymongo", "pymongo_client.py"),
		java(javaClients, "driver", "ebb.Client"),
	}
}

func python(name, script string) client {
	return client{
		name:  "python/" + name,
		needs: []need{{command: "python3", what: "Python"}, {folder: "python/.venv/.ready", what: "the Python packages"}},
		dir:   "python", argv: []string{filepath.Join(".venv", "bin", "python"), script},
	}
}

// The folders of the Java programs, each with the packages that it needs.
const javaClients, javaDebezium = "clients", "debezium"

func java(module, name, class string) client {
	target := filepath.Join(module, "target")
	return client{
		name:  "java/" + name,
		needs: []need{{command: "java", what: "Java"}, {folder: "java/debezium/target/.ready", what: "the compiled Java clients"}},
		dir:   "java", argv: []string{"java", "-cp", filepath.Join(target, "classes") + string(os.PathListSeparator) + filepath.Join(target, "dependency", "*"), class},
	}
}

// memberClients are those that need a replica set.
func memberClients() []client {
	return []client{
		{name: "node/streams", needs: node(), dir: "node", argv: []string{"node", "streams.mjs"}},
		{name: "node/mongoose", needs: node(), dir: "node", argv: []string{"node", "mongoose_set.mjs"}},
		{name: "node/agenda", needs: node(), dir: "node", argv: []string{"node", "agenda.mjs"}},
		java(javaClients, "spring", "ebb.Spring"),
	}
}

// clusterVariable names the placement drivers of a TiKV cluster. Where it is set clients meet a server that has its data there (make tikv).
const clusterVariable = "EBB_TIKV_PD"

// dataArgs say where a server has its data.
func dataArgs(t *testing.T) []string {
	pd := os.Getenv(clusterVariable)
	if pd == "" {
		return []string{"--dbpath", t.TempDir()}
	}
	return []string{"--storageEngine", "tikv", "--tikvPD", pd, "--tikvKeyspace", fmt.Sprintf("%s-%d", t.Name(), time.Now().UnixMilli())}
}

func TestClients(t *testing.T) {
	server := binary.Start(t, binary.Build(t), dataArgs(t)...)
	runClients(t, server, clients(), func(t *testing.T) { goClient(t, server) })
}

// TestMemberClients is TestClients on a replica set of one.
func TestMemberClients(t *testing.T) {
	server := binary.Start(t, binary.Build(t), append(dataArgs(t), "--replSet", "rs", "--replSetInitiate")...)
	runClients(t, server, memberClients(), func(*testing.T) {})
}

// runClients runs clients at once, and what else is to run beside them.
func runClients(t *testing.T, server *binary.Server, all []client, beside func(t *testing.T)) {
	t.Run("all", func(t *testing.T) { // ends when its parallel parts have
		for _, c := range all {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				c.require(t)
				c.run(t, server.URI("directConnection=true"))
			})
		}
		beside(t)
	})
	if how := server.Crashed(); how != "" {
		t.Errorf("the server did not survive its clients: %s", how)
	}
	if t.Failed() {
		t.Logf("the server's log ends with:\n%s", server.Log())
	}
}

// require skips the client when something is missing; under CI that is a failure, because there nobody reads skips.
func (c client) require(t *testing.T) {
	t.Helper()
	for _, n := range c.needs {
		var err error
		if n.command != "" {
			_, err = exec.LookPath(n.command)
		} else {
			_, err = os.Stat(n.folder)
		}
		switch {
		case err == nil:
		case os.Getenv("CI") == "true":
			t.Fatalf("%s is missing: e2e/install.sh brings what it can (%v)", n.what, err)
		default:
			t.Skipf("%s is missing: `make e2e` brings what it can (%v)", n.what, err)
		}
	}
}

// run has the client talk to the server at uri; env are further variables for it.
func (c client) run(t *testing.T, uri string, env ...string) {
	ctx, cancel := context.WithTimeout(t.Context(), cmp.Or(c.limit, clientLimit))
	defer cancel()
	argv := make([]string, len(c.argv))
	for i, arg := range c.argv {
		argv[i] = strings.ReplaceAll(arg, "$URI", uri)
	}
	if strings.Contains(argv[0], string(filepath.Separator)) {
		argv[0], _ = filepath.Abs(filepath.Join(c.dir, argv[0])) // the folder exists: require looked
	}
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir = c.dir
	cmd.WaitDelay = 5 * time.Second
	cmd.Env = append(append(os.Environ(), "EBB_URI="+uri, "HOME="+t.TempDir(), "NO_COLOR=1"), env...)
	if c.stdin != "" {
		typed, err := os.Open(filepath.Join(c.dir, c.stdin))
		if err != nil {
			t.Fatal(err)
		}
		defer typed.Close()
		cmd.Stdin = typed
	}
	out, err := cmd.CombinedOutput()
	if c.stdin != "" {
		err = checkTyped(filepath.Join(c.dir, c.stdin), string(out), err)
	} else {
		err = checkTAP(string(out), err)
	}
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// checkTAP reads what the scripts print.
func checkTAP(out string, exit error) error {
	result := regexp.MustCompile(`^(not )?ok \S`)
	plan := regexp.MustCompile(`^1\.\.(\d+)$`)
	passed, failed, planned := 0, 0, "none"
	lines := bufio.NewScanner(strings.NewReader(out))
	lines.Buffer(nil, len(out)+1)
	for lines.Scan() {
		line := lines.Text()
		if found := plan.FindStringSubmatch(line); found != nil {
			planned = found[1]
		}
		switch found := result.FindStringSubmatch(line); {
		case found == nil:
		case found[1] == "":
			passed++
		default:
			failed++
		}
	}
	switch {
	case exit != nil:
		return fmt.Errorf("the client ended with %w (%d checks passed, %d failed)", exit, passed, failed)
	case failed > 0 || passed == 0 || planned != fmt.Sprint(passed):
		return fmt.Errorf("%d checks passed, %d failed, announced: %s", passed, failed, planned)
	}
	return nil
}

// checkTyped compares a session at the shell's prompt with the expectations written into it: after each line that is
// typed, lines "// > text" must be found in the output in this order, as they stand or as /a pattern/.
func checkTyped(file, out string, exit error) error {
	if exit != nil {
		return fmt.Errorf("the shell ended with %w", exit)
	}
	typed, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	rest, wanted := out, 0
	for n, line := range strings.Split(string(typed), "\n") {
		want, ok := strings.CutPrefix(line, "// > ")
		if !ok {
			continue
		}
		wanted++
		pattern := regexp.QuoteMeta(want)
		if inner, ok := strings.CutPrefix(want, "/"); ok {
			pattern = strings.TrimSuffix(inner, "/")
		}
		found := regexp.MustCompile(pattern).FindStringIndex(rest)
		if found == nil {
			return fmt.Errorf("%s:%d: the output does not show %q where it should; what follows the last match:\n%s\n--- all of it:", file, n+1, want, rest)
		}
		rest = rest[found[1]:]
	}
	if wanted == 0 {
		return fmt.Errorf("%s expects nothing", file)
	}
	return nil
}
