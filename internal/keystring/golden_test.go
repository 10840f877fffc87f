package keystring_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/keystring"
)

// TestForm pins the form on disk. Each line of a "key" is a value in the shell's notation; out come its key and, where
// there are any, its type bits. "key desc" gives descending keys.
func TestForm(t *testing.T) {
	datadriven.RunTest(t, "testdata/form.txt", func(t *testing.T, d *datadriven.TestData) string {
		var out strings.Builder
		for _, line := range strings.Split(d.Input, "\n") {
			v, err := bson.Parse(line)
			if err != nil {
				d.Fatalf(t, "%s: %v", line, err)
			}
			fmt.Fprintf(&out, "%x", keystring.Append(nil, v, d.HasArg("desc")))
			if bits := keystring.AppendTypeBits(nil, v); len(bits) > 0 {
				fmt.Fprintf(&out, "  type bits %x", bits)
			}
			out.WriteByte('\n')
		}
		return out.String()
	})
}
