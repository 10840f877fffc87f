package main

import (
	"bytes"
	"flag"
	"os"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "write what is expected anew")

func TestCompare(t *testing.T) {
	var out bytes.Buffer
	if err := compareFiles([]string{"testdata/before.jsonl", "testdata/after.jsonl"}, &out); err != nil {
		t.Fatal(err)
	}
	const name = "testdata/compared.txt"
	if *rewrite {
		if err := os.WriteFile(name, out.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil || !bytes.Equal(out.Bytes(), want) {
		t.Errorf("%v, got\n%s\nwant\n%s", err, &out, want)
	}
}

func TestCompareWants(t *testing.T) {
	for _, names := range [][]string{nil, {"testdata/before.jsonl"}, {"testdata/before.jsonl", "testdata/none.jsonl"}, {"testdata/before.jsonl", "compare.go"}} {
		if err := compareFiles(names, &bytes.Buffer{}); err == nil {
			t.Errorf("%v can be compared", names)
		}
	}
}

func TestSummarize(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   summary
	}{
		{[]float64{3}, summary{3, 3, 3}},
		{[]float64{3, 1}, summary{2, 1, 3}},
		{[]float64{9, 1, 2}, summary{2, 1, 9}},
		{[]float64{4, 1, 9, 2}, summary{3, 1, 9}},
	} {
		if got := summarize(c.values); got != c.want {
			t.Errorf("%v: %v, want %v", c.values, got, c.want)
		}
	}
}

func TestNumber(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 0.00012345: "0.0001", 0.5: "0.5000", 1.23456: "1.235", 123.456: "123.5", 1234567: "1234567", -12.3: "-12.30"} {
		if got := number(v); got != want {
			t.Errorf("%v is printed as %s, want %s", v, got, want)
		}
	}
}

func TestSignificant(t *testing.T) {
	for v, want := range map[float64]float64{0: 0, 123456.7: 123460, 0.00123456: 0.0012346, 99999.9: 100000, -1.234567: -1.2346} {
		if got := significant(v); got != want {
			t.Errorf("%v is kept as %v, want %v", v, got, want)
		}
	}
}
