package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/spf13/pflag"
)

// TestLoad reads a file, the text of the case, under the flags that the command line of the case has. "file" has a file,
// "flags" has none.
func TestLoad(t *testing.T) {
	for _, file := range []string{"testdata/load.txt", "testdata/tls.txt", "testdata/ldap.txt", "testdata/console.txt", "testdata/mongod.txt"} {
		loadFile(t, file)
	}
}

func loadFile(t *testing.T, file string) {
	datadriven.RunTest(t, file, func(t *testing.T, d *datadriven.TestData) string {
		dir := t.TempDir()
		var argv []string
		switch d.Cmd {
		case "file":
			name := filepath.Join(dir, "ebb.conf")
			if err := os.WriteFile(name, []byte(d.Input), 0o600); err != nil {
				t.Fatal(err)
			}
			argv = []string{"--config", name}
			for _, a := range d.CmdArgs {
				argv = append(argv, a.Key+"="+strings.Join(a.Vals, ","))
			}
		case "flags":
			argv = strings.Fields(d.Input)
		}
		return strings.ReplaceAll(load(argv), dir, "DIR")
	})
}

// load is what differs from the defaults, or the error.
func load(argv []string) string {
	set := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	flags := NewFlags(set)
	if err := set.Parse(argv); err != nil {
		return fmt.Sprintf("flags: %v\n", err)
	}
	cfg, err := Load(argv, flags)
	if err != nil {
		return fmt.Sprintf("error: %v\n", err)
	}
	var out strings.Builder
	show := func(name string, got, usual any) {
		if g := fmt.Sprint(got); g != fmt.Sprint(usual) {
			fmt.Fprintf(&out, "%s %s\n", name, g)
		}
	}
	d := Default()
	show("port", cfg.Net.Port, d.Net.Port)
	show("bindIp", cfg.Net.BindIP, d.Net.BindIP)
	show("maxConns", cfg.Net.MaxConns, d.Net.MaxConns)
	show("maxConnsOverride", cfg.Net.MaxConnsOverride, d.Net.MaxConnsOverride)
	show("compressors", cfg.Net.Compressors, d.Net.Compressors)
	show("dbPath", cfg.Storage.DBPath, d.Storage.DBPath)
	show("tls", fmt.Sprintf("%+v", cfg.Net.TLS), fmt.Sprintf("%+v", d.Net.TLS))
	show("unixSocket", fmt.Sprintf("%+v", cfg.Net.UnixSocket), fmt.Sprintf("%+v", d.Net.UnixSocket))
	usual := Console{BindIP: []string{"127.0.0.1"}}
	if cfg.Net.Port == DefaultPort {
		usual.Port = DefaultConsolePort
	}
	show("console", fmt.Sprintf("%+v", cfg.Net.Console), fmt.Sprintf("%+v", usual))
	show("metrics", fmt.Sprint(cfg.Net.Metrics.Port, cfg.Net.Metrics.BindIP), fmt.Sprint(0, d.Net.Metrics.BindIP))
	show("authorized", cfg.Security.Authorized(), false)
	show("ldap", fmt.Sprintf("%+v", cfg.Security.LDAP), fmt.Sprintf("%+v", d.Security.LDAP))
	show("keyFile", cfg.Security.KeyFile, "")
	show("clusterAuthMode", cfg.Security.ClusterAuthMode, "")
	show("argv", cfg.Argv, fmt.Sprint(argv))
	show("engine", cfg.Storage.Engine, d.Storage.Engine)
	show("javascript", cfg.Security.JavaScript, d.Security.JavaScript)
	show("cacheBytes", cfg.Storage.CacheBytes, d.Storage.CacheBytes)
	show("blockCompressor", cfg.Storage.BlockCompressor, "")
	show("startWithDamagedLog", cfg.Storage.StartWithDamagedLog, false)
	show("minFreeBytes", cfg.Storage.MinFreeBytes, d.Storage.MinFreeBytes)
	show("reserveBytes", cfg.Storage.ReserveBytes, d.Storage.ReserveBytes)
	show("replication", fmt.Sprintf("%+v", cfg.Replication), fmt.Sprintf("%+v", d.Replication))
	show("log", cfg.SystemLog.Path, "")
	show("logAppend", cfg.SystemLog.Append, false)
	show("reopen", cfg.SystemLog.Reopen, false)
	show("quiet", cfg.SystemLog.Quiet, false)
	show("verbosity", cfg.SystemLog.Verbosity, 0)
	show("profiling", fmt.Sprintf("%+v", cfg.Profiling), fmt.Sprintf("%+v", d.Profiling))
	show("pidFile", cfg.PIDFile, "")
	show("setParameter", cfg.SetParameter, "[]")
	show("ignored", cfg.Ignored, "[]")
	fmt.Fprintf(&out, "parsed %s\n", cfg.Parsed.Value())
	return out.String()
}

func TestFileThatCannotBeRead(t *testing.T) {
	dir := t.TempDir()
	large := filepath.Join(dir, "large")
	if err := os.WriteFile(large, make([]byte, maxFileBytes+1), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		filepath.Join(dir, "none"): "error: Error opening config file " + dir + "/none: no such file or directory\n",
		dir:                        "error: Error reading config file " + dir + ": is a directory\n",
		large:                      "error: Error reading config file " + large + ": it is larger than 1048576 bytes\n",
	} {
		if got := load([]string{"--config", name}); got != want {
			t.Errorf("got %s want %s", got, want)
		}
	}
}

func TestFileNestedDeep(t *testing.T) {
	var text strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&text, "{a%d: ", i)
	}
	if _, err := parseFile([]byte(text.String() + "1" + strings.Repeat("}", 10_000))); err == nil {
		t.Error("ten thousand levels were read")
	}
	if _, err := parseFile([]byte(strings.Repeat("{a: ", 30) + "1" + strings.Repeat("}", 30))); err == nil || !strings.Contains(err.Error(), "too deep") {
		t.Errorf("thirty levels: %v", err)
	}
}

func TestEveryOptionHasAUniqueKeyAndFlag(t *testing.T) {
	seen := map[string]bool{}
	for _, o := range options() {
		for _, name := range []string{o.key, "--" + o.flag} {
			if name != "--" && seen[name] {
				t.Errorf("%s is there twice", name)
			}
			seen[name] = true
		}
		if (o.flag == "") != (o.help == "") {
			t.Errorf("%s: a flag and its help go together", o.key)
		}
	}
}

// TestMemberKeyFile: members that go by certificates alone take no key.
func TestMemberKeyFile(t *testing.T) {
	for mode, want := range map[string]string{"": "key", ClusterKeyFile: "key", ClusterSendKeyFile: "key", ClusterSendX509: "key", ClusterX509: ""} {
		if got := (&Security{KeyFile: "key", ClusterAuthMode: mode}).MemberKeyFile(); got != want {
			t.Errorf("clusterAuthMode %q: %q, not %q", mode, got, want)
		}
	}
}
