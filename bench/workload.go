package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"go.mongodb.org/mongo-driver/v2/mongo"
)

// A workload is one thing that clients do.
type workload interface {
	// prepare makes what measuring starts from, in an empty database. It is done once, and not measured.
	prepare(ctx context.Context, b *bench) error
	// measure does the work and tells what it saw. It is done -runs times, each on what the one before left.
	measure(ctx context.Context, b *bench) error
}

// row is a line of the table of workloads.
type row struct {
	name, about string
	long        bool // not one of the short ones
	member      bool // needs a member of a replica set
	workload    workload
}

func workloads(s *settings) []row {
	rows := []row{
		{name: "bulk", about: "insertMany of -docs documents, -batch at once", workload: &bulk{}},
		{name: "bulk-ttl", about: "the same into a collection with a TTL index on a date far away", workload: &bulk{ttl: true}},
		{name: "insert", about: "single inserts by -workers", workload: &insert{}},
		{name: "find", about: "finds by _id by -workers", workload: &find{}},
		{name: "range", about: "100 neighbours by a secondary index", workload: &indexRange{}},
		{name: "covered", about: "the same 100 keys, without their documents", workload: &indexRange{covered: true}},
		{name: "sort", about: "the 100 largest by a field without index, of all -docs", workload: &find{op: largest, few: true}},
		{name: "aggregate", about: "$match of 10 000 by an index, $group into 4, $sort", workload: &aggregate{pipeline: matchGroupSort}},
		{name: "group", about: "$group of all -docs into 16 384, $sort, $limit", workload: &aggregate{pipeline: groupAll}},
	}
	rows = append(rows, ycsbRows(s)...)
	rows = append(rows, row{name: "transaction", about: "transactions of two updates by _id beside single updates, on a replica set of one", member: true, workload: &transaction{}})
	rows = append(rows,
		row{name: "expiry", about: "-expiry-docs documents expire at one moment", workload: &expiry{}},
		row{name: "expiry-probe", about: "the same, with finds and inserts on another collection", workload: &expiry{probed: true}},
		row{name: "expiry-half", about: "-expiry-docs of twice as many, and a second index", workload: &expiry{half: true}},
		row{name: "expiry-half-probe", about: "the same, with finds and inserts on another collection", workload: &expiry{half: true, probed: true}},
		row{name: "expiry-told", about: "the same with an event each, to which a stream listens, with finds and inserts on another collection", member: true, long: true, workload: &toldExpiry{}},
		row{name: "expiry-second", about: "-expiry-docs expire by a second TTL index, beside one client that finds by _id", long: true, workload: &secondExpiry{}},
		row{name: "busy", about: "finds and inserts beside a process that only computes, for 0, 25, 50 and 75 % of one processor's time", member: true, long: true, workload: &besideBusy{}},
		row{name: "logins", about: "finds by _id alone, and beside -logins clients that log in within -logins-for", long: true, workload: &logins{}},
		row{name: "set", about: "a replica set of three beside one of one: durable inserts, how far secondaries are behind, -expiry-docs that expire", member: true, long: true, workload: &set{}},
		row{name: "sliding", about: "updates by _id that keep _ts documents alive", long: true, workload: &sliding{}},
		row{name: "steady", about: "-rate inserts a second that live for -life", long: true, workload: &steady{}},
	)
	rows = append(rows, indexesRows(s)...)
	return append(rows, growthRows(s)...)
}

// choose picks rows by names, patterns, "short" and "all", in the order of the table.
func choose(rows []row, wanted string) (out []row, err error) {
	patterns := strings.Split(wanted, ",")
	met := make([]bool, len(patterns))
	for _, r := range rows {
		taken := false
		for i, pattern := range patterns {
			ok, err := path.Match(pattern, r.name)
			if err != nil {
				return nil, fmt.Errorf("-workloads %s: %w", pattern, err)
			}
			if ok || pattern == "all" || pattern == "short" && !r.long {
				met[i], taken = true, true
			}
		}
		if taken {
			out = append(out, r)
		}
	}
	for i, pattern := range patterns {
		if !met[i] {
			return nil, fmt.Errorf("no workload is called %q: see bench list", pattern)
		}
	}
	return out, nil
}

// bench is what a workload gets: the server, an empty database, and where to tell.
type bench struct {
	*settings
	target *target
	db     *mongo.Database
	name   string // of the row
	run    int
	sink   *sink
}

// tell writes a result under the row's name, with more of a name behind it where one measuring has several results.
func (b *bench) tell(more string, m metrics) error { return b.tellSeries(more, m, nil) }

func (b *bench) tellSeries(more string, m metrics, series map[string][]float64) error {
	return b.sink.write(&result{Workload: b.name + more, Run: b.run, Server: b.target.version, Metrics: m, Series: series})
}

// loop is the closed loop of the flags.
func (b *bench) loop() loop {
	return loop{target: b.target, workers: b.workers, warm: b.warm, length: b.length}
}

func measureAll(ctx context.Context, s *settings, out io.Writer) error {
	rows, err := choose(workloads(s), s.workloads)
	if err != nil {
		return err
	}
	sink, err := openSink(s, out)
	if err != nil {
		return err
	}
	for _, r := range rows {
		if err = measureRow(ctx, s, r, sink); err != nil {
			err = fmt.Errorf("%s: %w", r.name, err)
			break
		}
	}
	return errors.Join(err, sink.close())
}

// measureRow gives each row a server of its own, where they are started here, so that none feels what others left.
func measureRow(ctx context.Context, s *settings, r row, sink *sink) (err error) {
	t, err := reach(ctx, s, r.member)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.close()) }()
	b := &bench{settings: s, target: t, db: t.client.Database(s.database), name: r.name, sink: sink}
	if err := b.db.Drop(ctx); err != nil {
		return fmt.Errorf("drop the database: %w", err)
	}
	if err := r.workload.prepare(ctx, b); err != nil {
		return fmt.Errorf("prepare: %w", err)
	}
	for b.run = 1; b.run <= s.runs; b.run++ {
		if err := r.workload.measure(ctx, b); err != nil {
			return fmt.Errorf("run %d: %w", b.run, err)
		}
	}
	return b.db.Drop(ctx)
}
