package metrics

import (
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
)

// figure is one family of values.
type figure struct {
	name, help string
	labels     []string
	// counts says that it only ever rises, from the start of the server on.
	counts bool
}

// row says what becomes of one field of serverStatus, or of several: in its path a "*" stands for any name, which is the value of the
// next label.
type row struct {
	path string // its names, parted by "/"
	figure
	// scale is what a value is multiplied by; 0 is 1.
	scale float64
	// trim is cut off the end of a label's value.
	trim string
	// omit is why the field is not told of. Its path stands for all that is below it as well.
	omit string
}

// status tells what the table says of a reply of serverStatus.
func (t teller) status(reply bson.Doc) {
	table := statusTable()
	eachField(reply, nil, func(path []string, value float64) {
		if r, labels := find(table, path); r != nil && r.omit == "" {
			t.tell(r.figure, r.scaled(value), labels...)
		}
	})
}

func (r *row) scaled(v float64) float64 {
	if r.scale == 0 {
		return v
	}
	return v * r.scale
}

// maxDepth bounds how deep a reply is looked into; serverStatus's deepest is six.
const maxDepth = 10

// eachField calls f with each number, bool, date and time of a document and of those within it.
func eachField(doc bson.Doc, above []string, f func(path []string, value float64)) {
	if len(above) == maxDepth {
		return
	}
	for it := doc.Iter(); it.Next(); {
		path := append(above[:len(above):len(above)], it.Key())
		switch v := it.Value(); {
		case v.Type == bson.TypeObject:
			eachField(v.Doc(), path, f)
		case v.IsNumber():
			f(path, v.AsDouble())
		case v.Type == bson.TypeBool:
			f(path, number(v.Bool()))
		case v.Type == bson.TypeDate:
			f(path, float64(v.Millis())/1000)
		case v.Type == bson.TypeTimestamp:
			seconds, _ := v.Timestamp()
			f(path, float64(seconds))
		}
	}
}

// find is the first row for a path, and the values of its labels; nil where there is none.
func find(table []row, path []string) (*row, []string) {
	for i := range table {
		if labels, ok := table[i].matches(path); ok {
			return &table[i], labels
		}
	}
	return nil, nil
}

func (r *row) matches(path []string) (labels []string, ok bool) {
	rest := r.path
	for _, name := range path {
		if rest == "" {
			return nil, r.omit != "" // below what is left out
		}
		var want string
		want, rest, _ = strings.Cut(rest, "/")
		switch want {
		case "*":
			labels = append(labels, strings.TrimSuffix(name, r.trim))
		case name:
		default:
			return nil, false
		}
	}
	return labels, rest == ""
}
