// Package packages holds what comes with the server for installing and running it to the server: its unit, its settings, and the arguments that
// containers and charts start it with. It must not know what those arguments do.
package packages

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"github.com/ebbdb/ebb/e2e/binary"
)

const root = "../.."

func text(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestServer holds what starts the server to the server itself.
func TestServer(t *testing.T) {
	ebb := binary.Build(t)
	t.Run("unit", func(t *testing.T) { checkUnit(t, ebb) })
	t.Run("settings", func(t *testing.T) { checkSettings(t, ebb) })
	t.Run("arguments", func(t *testing.T) { checkArguments(t, ebb) })
}

// checkUnit has systemd look at the unit, with the server where it is here.
func checkUnit(t *testing.T, ebb string) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd is not on this machine")
	}
	unit := strings.Replace(text(t, "deploy/systemd/ebb.service"), "/usr/bin/ebb", ebb, 1)
	// The pages of the manual come with the package.
	unit = regexp.MustCompile(`(?m)^Documentation=.*\n`).ReplaceAllString(unit, "")
	file := filepath.Join(t.TempDir(), "ebb.service")
	if err := os.WriteFile(file, []byte(unit), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(analyze, "verify", "--man=no", file).CombinedOutput()
	for line := range strings.Lines(string(out)) { // of other units of the machine it may say what it likes
		if strings.Contains(line, "ebb.service") {
			t.Errorf("systemd-analyze: %s", line)
		}
	}
	if err != nil && !bytes.Contains(out, []byte(".service")) {
		t.Errorf("%v: %s", err, out)
	}
}

// checkSettings starts the server with the settings of the packages, but in folders of the test's own.
func checkSettings(t *testing.T, ebb string) {
	if runtime.GOOS == "windows" {
		t.Skip("the packages are for Linux")
	}
	dir := t.TempDir()
	settings := text(t, "deploy/packages/ebb.conf")
	for old, now := range map[string]string{"/var/lib/ebb": filepath.Join(dir, "data"), "/var/log/ebb": dir, "/run/ebb": dir, "port: 27017": "port: 0"} {
		if !strings.Contains(settings, old) {
			t.Fatalf("ebb.conf does not say %q any more", old)
		}
		settings = strings.ReplaceAll(settings, old, now)
	}
	file := filepath.Join(dir, "ebb.conf")
	if err := os.WriteFile(file, []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(ebb, "serve", "--config", file)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Signal(os.Interrupt)
	awaitLine(t, filepath.Join(dir, "ebb.log"), "Waiting for connections")
}

// checkArguments: each flag that something here starts the server with is one that it has.
func checkArguments(t *testing.T, ebb string) {
	has := map[string]bool{}
	for _, verb := range []string{"serve", "ping"} {
		help, err := exec.Command(ebb, verb, "--help").Output()
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`--(\w+)`).FindAllSubmatch(help, -1) {
			has[string(m[1])] = true
		}
	}
	ofMongosh := map[string]bool{"eval": true}
	comment := regexp.MustCompile(`(?m)^\s*#.*$`)
	for path, least := range map[string]int{"Dockerfile": 4, "deploy/compose/replica-set.yml": 5, "deploy/compose/three-members.yml": 15, "deploy/helm/ebb/templates/statefulset.yaml": 8, "deploy/systemd/ebb.service": 1} {
		found := regexp.MustCompile(`[\s"\[]--([A-Za-z_]\w+)`).FindAllStringSubmatch(comment.ReplaceAllString(text(t, path), ""), -1)
		n := 0
		for _, m := range found {
			switch {
			case has[m[1]]:
				n++
			case path != "Dockerfile" && !ofMongosh[m[1]]: // whose own instructions have flags, too
				t.Errorf("%s starts the server with --%s, which it does not have", path, m[1])
			}
		}
		if n < least {
			t.Errorf("only %d flags of the server were found in %s", n, path)
		}
	}
}

// TestYAML reads what is YAML and no template.
func TestYAML(t *testing.T) {
	var files []string
	for _, pattern := range []string{"deploy/compose/*.yml", "deploy/prometheus/*.yml", "deploy/packages/*.yaml", "deploy/helm/ebb/*.yaml", ".github/*.yml", ".github/*/*.yml", ".goreleaser.yaml", "mkdocs.yml"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %v", pattern, err)
		}
		files = append(files, found...)
	}
	for _, file := range files {
		f, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		var doc map[string]any
		if err := yaml.NewDecoder(f).Decode(&doc); err != nil && !errors.Is(err, io.EOF) || len(doc) == 0 {
			t.Errorf("%s: %v", file, err)
		}
		f.Close()
	}
}

// TestWorkflowsUseTheVerbs: what a workflow runs of this project is a verb of the Makefile, so that everybody can run it too.
func TestWorkflowsUseTheVerbs(t *testing.T) {
	verbs := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^([a-z0-9-]+):.*## `).FindAllStringSubmatch(text(t, "Makefile"), -1) {
		verbs[m[1]] = true
	}
	files, err := filepath.Glob(filepath.Join(root, ".github/workflows/*.yml"))
	if err != nil || len(files) < 3 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, run := range regexp.MustCompile(`run: (.*)`).FindAllStringSubmatch(string(b), -1) {
			words := strings.Fields(run[1])
			switch words[0] {
			case "make":
				for _, v := range words[1:] {
					if !verbs[v] && !strings.Contains(v, "=") {
						t.Errorf("%s: there is no verb %s", file, v)
					}
				}
			case "sudo", "test":
			default:
				t.Errorf("%s runs %q, which is no verb of the Makefile", file, run[1])
			}
		}
	}
}
