package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ebbdb/ebb"
)

// TestMain has the program of the tests be what a workload starts it as.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && otherClientsOf(os.Args[1]) != nil {
		main()
		return
	}
	os.Exit(m.Run())
}

// TestWorkloads runs each workload, much smaller than it is meant to be, on a server of its own in this process.
func TestWorkloads(t *testing.T) {
	s, err := parseSettings([]string{"-sizes", "50,100"}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range workloads(s) {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			results := measured(t, row.name, row.member)
			if len(results) == 0 {
				t.Fatal("it told nothing")
			}
			for _, r := range results {
				if !strings.HasPrefix(r.Workload, row.name) || r.Server == "" || len(r.Metrics) < 2 {
					t.Errorf("a result is %+v", r)
				}
			}
			if row.name == "logins" && results[len(results)-1].Metrics["logins"] == 0 {
				t.Error("nobody has logged in")
			}
			if row.name == "expiry" && results[0].Metrics["visible_first"] != 0 {
				t.Errorf("the first query saw documents: %+v", results[0])
			}
		})
	}
}

// measured runs a workload, and reads its results' file.
func measured(t *testing.T, workload string, member bool) []result {
	folder, out, ebb, lead := t.TempDir(), &bytes.Buffer{}, "", 500*time.Millisecond
	if workload == "set" { // it starts members of its own
		ebb, lead = filepath.Join(t.TempDir(), "ebb"), 3*time.Second
		if out, err := exec.Command("go", "build", "-o", ebb, "../cmd/ebb").CombinedOutput(); err != nil {
			t.Fatalf("build ebb: %v: %s", err, out)
		}
	}
	url, err := serve(t, member), error(nil)
	for ; lead < time.Minute; lead *= 2 { // the machine may be slow
		err = run(t.Context(), []string{"-url", url, "-ebb", ebb, "-results", folder, "-label", "small", "-workloads", workload, "-runs", "1", "-docs", "100", "-batch", "30",
			"-workers", "2", "-warm", "5ms", "-for", "20ms", "-sizes", "50,100", "-expiry-docs", "100", "-lead", lead.String(), "-quiet", "100ms", "-probe", "50", "-probe-for", "300ms",
			"-rate", "1000", "-steady-batch", "10", "-steady-for", "1200ms", "-life", "1s", "-logins", "20", "-logins-for", "200ms"}, out)
		if err == nil || !strings.Contains(err.Error(), "give a longer -lead") {
			break
		}
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	files, err := filepath.Glob(filepath.Join(folder, "*-small.jsonl"))
	if err != nil || len(files) != 1 {
		t.Fatalf("the files of results are %v, %v", files, err)
	}
	results, err := readResults(files[0])
	if err != nil {
		t.Fatal(err)
	}
	return results
}

// serve runs a server until the test ends.
func serve(t *testing.T, member bool) (url string) {
	o := ebb.Options{Port: ebb.AnyPort, Engine: ebb.InMemory, CacheBytes: 8 << 20}
	if member {
		o.ReplicaSet = &ebb.ReplicaSet{Name: "bench", Initiate: true}
	}
	server, err := ebb.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- server.Serve(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		} else if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	return "mongodb://" + server.Addr() + "/?directConnection=true"
}

func TestMeter(t *testing.T) {
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("there is no /proc here")
	}
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "file"), make([]byte, 100_000), 0o600); err != nil {
		t.Fatal(err)
	}
	m := (&target{pids: []int{os.Getpid()}, data: folder}).meter()
	for begin := time.Now(); time.Since(begin) < 50*time.Millisecond; {
		_ = fmt.Sprint(begin)
	}
	out := metrics{}
	m.stop().into(out, 10)
	for _, name := range []string{"server_us", "client_us", "server_per_client", "server_cores", "client_cores", "rss_before_mib", "rss_after_mib", "rss_peak_mib", "disk_mib", "disk_data_mib"} {
		if out[name] <= 0 {
			t.Errorf("%s is %v", name, out[name])
		}
	}
}

func TestChoose(t *testing.T) {
	s, err := parseSettings(nil, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	for wanted, want := range map[string]string{
		"find,bulk":  "bulk find",
		"ycsb-[af]":  "ycsb-a ycsb-f",
		"growth-*":   "growth-100000 growth-1000000 growth-10000000",
		"nothing":    `error: no workload is called "nothing": see bench list`,
		"find,short": "bulk bulk-ttl insert find range covered sort aggregate group ycsb-a ycsb-b ycsb-c ycsb-d ycsb-e ycsb-f transaction expiry expiry-probe expiry-half expiry-half-probe",
	} {
		rows, err := choose(workloads(s), wanted)
		var names []string
		for _, r := range rows {
			names = append(names, r.name)
		}
		got := strings.Join(names, " ")
		if err != nil {
			got = "error: " + err.Error()
		}
		if got != want {
			t.Errorf("%s: %s, want %s", wanted, got, want)
		}
	}
}

func TestSettings(t *testing.T) {
	for _, bad := range [][]string{{"-runs", "0"}, {"-sizes", "1,x"}, {"-sizes", "-1"}, {"-pids", "1"}, {"-indexes", "6"}, {"-rate", "0"}, {"measure"}} {
		if s, err := parseSettings(bad, io.Discard); err == nil {
			t.Errorf("%v is read as %+v", bad, s)
		}
	}
	var out bytes.Buffer
	if err := run(t.Context(), []string{"list"}, &out); err != nil || !strings.Contains(out.String(), "ycsb-a") {
		t.Errorf("list: %v\n%s", err, &out)
	}
}
