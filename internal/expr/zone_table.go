package expr

import (
	"bytes"
	"encoding/binary"
	"time"
)

// tableEnd is up to when a zone's changes are in its table. What comes behind follows from its rule.
var tableEnd = time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)

// maxChanges and maxZoneKinds bound the table of a zone. Those of the archive have at most some 400 changes and 20 kinds.
const (
	maxChanges   = 4000
	maxZoneKinds = 250
)

// zoneKind is what clocks show between two changes.
type zoneKind struct {
	name   string
	offset int
	dst    bool
}

// withTable is the file of a zone (RFC 9636) with its changes up to tableEnd. A file of the archive has none from where one rule holds for good, and
// package time works that rule out for each date, which takes longer than to look one up.
func withTable(file []byte, z *time.Location) ([]byte, bool) {
	if len(file) < 2 || file[len(file)-1] != '\n' {
		return nil, false
	}
	rule := file[bytes.LastIndexByte(file[:len(file)-1], '\n'):]
	var times, kinds []byte
	var all []zoneKind
	number, last := map[zoneKind]byte{}, byte(0) // the first is what holds before all changes
	for at := time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC).In(z); ; {
		name, offset := at.Zone()
		kind := zoneKind{name, offset, at.IsDST()}
		n, known := number[kind]
		if !known {
			n = byte(len(all))
			number[kind], all = n, append(all, kind)
		}
		if n != last {
			times, kinds, last = binary.BigEndian.AppendUint64(times, uint64(at.Unix())), append(kinds, n), n
		}
		switch _, end := at.ZoneBounds(); {
		case len(all) > maxZoneKinds || len(kinds) > maxChanges:
			return nil, false
		case end.IsZero() || end.After(tableEnd):
		case end.After(at):
			at = end
			continue
		default: // by a rule each year is by itself, and a leap year's last day is missed
			at = at.AddDate(0, 0, 2)
			continue
		}
		break
	}
	var records []byte
	var names bytes.Buffer
	for _, k := range all {
		if names.Len() > 255 {
			return nil, false
		}
		dst := byte(0)
		if k.dst {
			dst = 1
		}
		records = append(binary.BigEndian.AppendUint32(records, uint32(int32(k.offset))), dst, byte(names.Len()))
		names.WriteString(k.name)
		names.WriteByte(0)
	}
	table := append(zoneHeader(0, 0, 0), zoneHeader(len(kinds), len(all), names.Len())...) // the first is that of an older version, which has nothing
	return bytes.Join([][]byte{table, times, kinds, records, names.Bytes(), rule}, nil), true
}

// zoneHeader begins a table of so many changes, kinds and bytes of names. It has neither leap seconds nor indicators.
func zoneHeader(changes, kinds, names int) []byte {
	b := append([]byte("TZif2"), make([]byte, 15)...)
	for _, n := range []int{0, 0, 0, changes, kinds, names} {
		b = binary.BigEndian.AppendUint32(b, uint32(n))
	}
	return b
}
