package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"
)

// metrics are what was measured, by names that end in their units.
type metrics map[string]float64

// result is a line of a results' file.
type result struct {
	Workload string `json:"workload"`
	Run      int    `json:"run"`
	Label    string `json:"label"`
	At       string `json:"at"` // when it was written
	Server   string `json:"server"`
	Machine  string `json:"machine"`
	// Flags are those that say how much work it was.
	Flags   map[string]any `json:"flags"`
	Metrics metrics        `json:"metrics"`
	// Series are values by the second, where the course of things matters.
	Series map[string][]float64 `json:"series,omitempty"`
}

// sink takes results: a line of text for who waits, a line of JSON for the file.
type sink struct {
	settings *settings
	out      io.Writer
	file     *os.File // nil: none
}

func openSink(s *settings, out io.Writer) (*sink, error) {
	k := &sink{settings: s, out: out}
	if s.results == "" {
		return k, nil
	}
	if err := os.MkdirAll(s.results, 0o755); err != nil {
		return nil, fmt.Errorf("results: %w", err)
	}
	name := filepath.Join(s.results, time.Now().UTC().Format(time.DateOnly)+"-"+s.label+".jsonl")
	file, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("results: %w", err)
	}
	k.file = file
	return k, nil
}

func (k *sink) close() error {
	if k.file == nil {
		return nil
	}
	return k.file.Close()
}

func (k *sink) write(r *result) error {
	r.Label, r.At = k.settings.label, time.Now().UTC().Format(time.RFC3339)
	r.Machine = fmt.Sprintf("%s/%s, %d processors", runtime.GOOS, runtime.GOARCH, runtime.NumCPU())
	r.Flags = k.settings.work()
	for name, v := range r.Metrics {
		r.Metrics[name] = significant(v)
	}
	fmt.Fprintf(k.out, "%s #%d", r.Workload, r.Run)
	for _, name := range inOrder(slices.Collect(maps.Keys(r.Metrics))) {
		fmt.Fprintf(k.out, "  %s %s", name, number(r.Metrics[name]))
	}
	fmt.Fprintln(k.out)
	if k.file == nil {
		return nil
	}
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	_, err = k.file.Write(append(line, '\n'))
	return err
}

func (s *settings) work() map[string]any {
	return map[string]any{"docs": s.docs, "batch": s.batch, "loaders": s.loaders, "workers": s.workers, "for": s.length.String(), "uniform": s.uniform,
		"expiryDocs": s.expiryDocs, "hide": s.hide, "probe": s.probe, "logins": s.logins, "loginsFor": s.loginsFor.String(), "rate": s.rate, "steadyBatch": s.steadyBatch, "life": s.life.String()}
}

// significant keeps five digits: what lies behind them is chance.
func significant(v float64) float64 {
	if v == 0 || math.IsInf(v, 0) || math.IsNaN(v) {
		return 0
	}
	scale := math.Pow(10, 4-math.Floor(math.Log10(math.Abs(v))))
	return math.Round(v*scale) / scale
}

// readResults reads a file of JSON lines.
func readResults(name string) (out []result, err error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	for lines := json.NewDecoder(file); ; {
		var r result
		if err := lines.Decode(&r); err == io.EOF {
			return out, nil
		} else if err != nil {
			return nil, fmt.Errorf("%s, result %d: %w", name, len(out)+1, err)
		}
		out = append(out, r)
	}
}
