package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// settings are the flags of a run. They stand in every result, so that two results can be told apart.
type settings struct {
	url, ebb, serve string
	pids            numbers
	data            string
	database        string

	workloads string
	runs      int
	label     string
	results   string

	docs, batch, loaders, workers int
	warm, length                  time.Duration
	uniform                       bool

	expiryDocs  int
	hide        bool
	lead, quiet time.Duration
	probe       float64
	probeFor    time.Duration

	logins    int
	loginsFor time.Duration

	rate        float64
	steadyBatch int
	steady      time.Duration
	life        time.Duration

	sizes   numbers
	indexes int
}

// parseSettings writes to out how it is used, when args say so or make no sense.
func parseSettings(args []string, out io.Writer) (*settings, error) {
	s := &settings{sizes: numbers{100_000, 1_000_000, 10_000_000}}
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.SetOutput(out)
	s.serverFlags(f)
	s.loadFlags(f)
	s.expiryFlags(f)
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	if f.NArg() > 0 {
		return nil, fmt.Errorf("%q is no flag and no verb (compare, list)", f.Arg(0))
	}
	return s, s.check()
}

func (s *settings) serverFlags(f *flag.FlagSet) {
	f.StringVar(&s.url, "url", "", "mongodb:// URL of the server; none starts -ebb for each workload, in a folder that goes away")
	f.StringVar(&s.ebb, "ebb", "bin/ebb", "the program to start where there is no -url")
	f.StringVar(&s.serve, "serve", "", "more `arguments` of ebb serve, separated by spaces")
	f.Var(&s.pids, "pids", "with -url: pids of the server, separated by commas; their children are counted too")
	f.StringVar(&s.data, "data", "", "with -url: the server's data folder, to tell its size")
	f.StringVar(&s.database, "db", "ebbbench", "the database, dropped before each workload")
	f.StringVar(&s.workloads, "workloads", "short", "names or patterns (ycsb-*) separated by commas; short; all")
	f.IntVar(&s.runs, "runs", 3, "how often each workload is measured")
	f.StringVar(&s.label, "label", "ebb", "names the results' file and lines")
	f.StringVar(&s.results, "results", "bench/results", "folder of the results; empty writes none")
}

func (s *settings) loadFlags(f *flag.FlagSet) {
	f.IntVar(&s.docs, "docs", 200_000, "documents of most workloads")
	f.IntVar(&s.batch, "batch", 1000, "documents an insertMany")
	f.IntVar(&s.loaders, "loaders", 1, "goroutines that load in bulk")
	f.IntVar(&s.workers, "workers", 16, "goroutines of the workloads of single operations")
	f.DurationVar(&s.warm, "warm", 2*time.Second, "start of such a workload that is not recorded")
	f.DurationVar(&s.length, "for", 20*time.Second, "how long such a workload is recorded")
	f.BoolVar(&s.uniform, "uniform", false, "ycsb: all keys alike instead of zipfian")
	f.Var(&s.sizes, "sizes", "growth: documents, separated by commas")
	f.IntVar(&s.indexes, "indexes", maxSecondary, "indexes-N: the most secondary indexes")
}

func (s *settings) expiryFlags(f *flag.FlagSet) {
	f.IntVar(&s.expiryDocs, "expiry-docs", 1_000_000, "expiry: documents that expire at one moment")
	f.BoolVar(&s.hide, "hide", true, "make TTL indexes with hideExpired; false for servers that do not know it")
	f.DurationVar(&s.lead, "lead", 0, "expiry: from the start of loading to the deadline; 0 reckons it from -expiry-docs")
	f.DurationVar(&s.quiet, "quiet", 3*time.Second, "expiry: the server is quiet when it has been idle for so long")
	f.Float64Var(&s.probe, "probe", 500, "expiry-probe, busy: finds and inserts a second, each, on another collection; logins: finds a second")
	f.DurationVar(&s.probeFor, "probe-for", 20*time.Second, "expiry-probe: for how long before the deadline, and after it; busy: for how long each")
	f.IntVar(&s.logins, "logins", 1000, "logins: clients that log in")
	f.DurationVar(&s.loginsFor, "logins-for", time.Minute, "logins: over how long they come")
	f.Float64Var(&s.rate, "rate", 20_000, "steady: documents a second")
	f.IntVar(&s.steadyBatch, "steady-batch", 100, "steady: documents an insertMany")
	f.DurationVar(&s.steady, "steady-for", 10*time.Minute, "steady: how long; a quarter of it for sliding")
	f.DurationVar(&s.life, "life", 10*time.Second, "steady, sliding: how long a document lives; whole seconds for sliding")
}

func (s *settings) check() error {
	switch {
	case s.url == "" && (len(s.pids) > 0 || s.data != ""):
		return errors.New("-pids and -data go with -url: of a server that is started here they are known")
	case s.runs < 1 || s.docs < 1 || s.batch < 1 || s.loaders < 1 || s.workers < 1 || s.expiryDocs < 1 || s.steadyBatch < 1:
		return errors.New("numbers must be positive")
	case s.logins < 1 || s.loginsFor <= 0:
		return errors.New("-logins and -logins-for must be positive")
	case s.rate <= 0 || s.probe <= 0:
		return errors.New("rates must be positive")
	case s.indexes < 0 || s.indexes > maxSecondary:
		return fmt.Errorf("-indexes goes from 0 to %d", maxSecondary)
	}
	return nil
}

// numbers is a flag of several whole numbers.
type numbers []int

func (n *numbers) String() string {
	var out []string
	for _, v := range *n {
		out = append(out, strconv.Itoa(v))
	}
	return strings.Join(out, ",")
}

func (n *numbers) Set(text string) error {
	*n = nil
	for _, part := range strings.Split(text, ",") {
		v, err := strconv.Atoi(part)
		if err != nil || v < 1 {
			return fmt.Errorf("%q is no positive number", part)
		}
		*n = append(*n, v)
	}
	return nil
}
