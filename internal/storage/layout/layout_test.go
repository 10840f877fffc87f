package layout

import (
	"bytes"
	"math"
	"slices"
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/index"
)

// An ordered id gives back what it was made of, and ids lie as orders, spans, dates and numbers do, behind all plain ones.
// TestSequenceID: a plain id has its number as it is, that of an entry of the oplog of 2040 too.
func TestSequenceID(t *testing.T) {
	for _, n := range []uint64{1, 1<<63 - 1, 2208988800<<32 | 7} {
		if got, ok := SequenceID(n).Sequence(); !ok || got != n {
			t.Errorf("the number of the id of %d is %d", n, got)
		}
	}
}

func TestOrderedID(t *testing.T) {
	all := []RecordID{SequenceID(1), SequenceID(math.MaxUint64 >> 1)}
	for _, order := range []uint32{1, 7, math.MaxUint32} {
		for _, span := range []byte{OnDefault, OnOverride, OnNever} {
			for _, date := range []int64{math.MinInt64, -1, 0, 1, math.MaxInt64} {
				for _, n := range []uint64{0, 1, 1<<63 - 1} {
					id := OrderedID(AppendPlace(nil, order, span, date), n)
					if !id.IsOrdered() || id.Order() != order || id.Span() != span || id.Date() != date || id.Number() != n {
						t.Fatalf("%x: order %d, span %d, date %d, number %d", id, id.Order(), id.Span(), id.Date(), id.Number())
					}
					if !id.IsSame(SequenceID(n)) || id.IsSame(SequenceID(n+1)) {
						t.Errorf("%x is not the record numbered %d", id, n)
					}
					all = append(all, id)
				}
			}
		}
	}
	if !slices.IsSortedFunc(all, RecordID.Compare) {
		t.Error("ids do not lie as what they are made of")
	}
	if id := all[0]; id.IsOrdered() || id.Number() != 1 {
		t.Errorf("%x: %d", id, id.Number())
	}
}

// An entry gives back what it was made of, whether its key or its value has the record id, and a cut one is refused or another.
func TestEntry(t *testing.T) {
	definition := func(name string, unique bool) *index.Definition {
		return &index.Definition{ID: 3, Name: name, Unique: unique}
	}
	keyString, bits := []byte{10, 20, 30}, []byte{5}
	for _, c := range []struct {
		name string
		e    Entries
		id   RecordID
	}{
		{"plain", Entries{definition("a", false), SequenceLength}, SequenceID(9)},
		{"ordered", Entries{definition("a", false), SequenceLength}, OrderedID(AppendPlace(nil, 4, OnDefault, 77), 9)},
		{"clustered", Entries{definition("a", false), 0}, RecordID{40, 1, 2, 3}},
		{"unique", Entries{definition("a", true), SequenceLength}, OrderedID(AppendPlace(nil, 4, OnDefault, 77), 9)},
	} {
		var room IDRoom
		key, value := c.e.EntryKey(nil, keyString, c.id), c.e.EntryValue(nil, c.id, bits)
		var got IndexEntry
		err := c.e.ReadEntry(&got, key, value, &room)
		if err != nil || !bytes.Equal(got.Key, keyString) || !bytes.Equal(got.TypeBits, bits) || !bytes.Equal(got.RecordID, c.id) {
			t.Errorf("%s: %x, %x: %+v (%v)", c.name, key, value, got, err)
		}
		if c.name != "plain" {
			if err := c.e.ReadEntry(&got, key, nil, &room); err == nil {
				t.Errorf("%s: an entry without its value is read", c.name)
			}
		}
		row, err := c.e.ReadSideRow(c.e.SideRowKey(nil, 8, 2, keyString, c.id), SideRowValue(nil, SidePut, c.id, bits))
		if err != nil || !row.Put || !bytes.Equal(row.KeyString, keyString) || !bytes.Equal(row.ID, c.id) || !bytes.Equal(row.TypeBits, bits) {
			t.Errorf("%s: %+v (%v)", c.name, row, err)
		}
	}
}

// A record gives back what it was made of; one that is cut off, or of another version, is refused.
func TestRecord(t *testing.T) {
	doc := bson.MustDoc(`{_id: 1, a: "text"}`)
	value := AppendRecord(nil, -5, doc)
	rec, err := ReadRecord(SequenceID(1), value)
	if err != nil || rec.Modified != -5 || !bytes.Equal(rec.Doc, doc) {
		t.Errorf("%+v (%v)", rec, err)
	}
	for n := range value {
		if _, err := ReadRecord(SequenceID(1), value[:n]); err == nil {
			t.Errorf("%d of %d bytes are read", n, len(value))
		}
	}
	value[0]++
	if _, err := ReadRecord(SequenceID(1), value); err == nil {
		t.Error("another version is read")
	}
}

// After is behind all that begins with the prefix, and nothing else is between.
func TestAfter(t *testing.T) {
	for _, c := range []struct{ prefix, want []byte }{
		{[]byte{1, 2}, []byte{1, 3}}, {[]byte{1, 0xFF}, []byte{2}}, {[]byte{0xFF, 0xFF}, nil}, {nil, nil},
	} {
		if got := After(c.prefix); !bytes.Equal(got, c.want) {
			t.Errorf("after %x is %x, want %x", c.prefix, got, c.want)
		}
	}
}
