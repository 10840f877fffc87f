package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// compareFiles prints, workload by workload, the medians of two results' files, how far the runs lie apart, and what the
// second's is times the first's.
func compareFiles(names []string, out io.Writer) error {
	if len(names) != 2 {
		return errors.New("compare wants two files of results")
	}
	var sides [2]samples
	for i, name := range names {
		results, err := readResults(name)
		if err != nil {
			return err
		}
		sides[i] = gather(results)
	}
	return printComparison(out, filepath.Base(names[0]), filepath.Base(names[1]), sides[0], sides[1])
}

// samples are the values of all runs, by workload and metric; order keeps the workloads as they came.
type samples struct {
	order  []string
	values map[string]map[string][]float64
}

func gather(results []result) samples {
	s := samples{values: map[string]map[string][]float64{}}
	for _, r := range results {
		if s.values[r.Workload] == nil {
			s.order = append(s.order, r.Workload)
			s.values[r.Workload] = map[string][]float64{}
		}
		for name, v := range r.Metrics {
			s.values[r.Workload][name] = append(s.values[r.Workload][name], v)
		}
	}
	return s
}

func printComparison(out io.Writer, nameA, nameB string, a, b samples) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "workload\tmetric\t%s\t\t%s\t\tratio\n", nameA, nameB)
	for _, workload := range a.order {
		other := b.values[workload]
		if other == nil {
			continue
		}
		for _, name := range inOrder(slices.Collect(maps.Keys(a.values[workload]))) {
			if other[name] == nil {
				continue
			}
			x, y := summarize(a.values[workload][name]), summarize(other[name])
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", workload, name, number(x.median), x.spread(), number(y.median), y.spread(),
				ratio(x, y), verdict(describe(name), x, y))
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(out, "\n~ the runs' ranges overlap: no difference is shown\n")
	writeMissing(out, nameB, a, b)
	writeMissing(out, nameA, b, a)
	return nil
}

func writeMissing(out io.Writer, name string, has, lacks samples) {
	var missing []string
	for _, workload := range has.order {
		if lacks.values[workload] == nil {
			missing = append(missing, workload)
		}
	}
	if len(missing) > 0 {
		fmt.Fprintf(out, "not in %s: %s\n", name, strings.Join(missing, ", "))
	}
}

// summary is what is said of one metric's runs.
type summary struct{ median, least, most float64 }

func summarize(values []float64) summary {
	v := slices.Sorted(slices.Values(values))
	n := len(v)
	return summary{median: (v[(n-1)/2] + v[n/2]) / 2, least: v[0], most: v[n-1]}
}

// spread is how far the farthest run lies from the median.
func (s summary) spread() string {
	if s.median == 0 {
		return ""
	}
	far := max(s.most-s.median, s.median-s.least) / math.Abs(s.median)
	return fmt.Sprintf("±%.0f%%", 100*far)
}

func ratio(a, b summary) string {
	switch r := b.median / a.median; {
	case a.median == 0:
		return ""
	case r < 0.1:
		return fmt.Sprintf("%.2g", r)
	default:
		return fmt.Sprintf("%.2f", r)
	}
}

// verdict marks what the runs do not tell apart, and otherwise says which way it went.
func verdict(m metric, a, b summary) string {
	switch {
	case a.least <= b.most && b.least <= a.most:
		return "~"
	case (b.median > a.median) == m.more:
		return "better"
	}
	return "worse"
}

// number prints four digits, and no exponents.
func number(v float64) string {
	places := 0
	for digits := math.Abs(v); places < 4 && digits < 1000 && digits != 0; digits *= 10 {
		places++
	}
	return strconv.FormatFloat(v, 'f', places, 64)
}
