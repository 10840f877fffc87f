package exec

import (
	"encoding/binary"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/fieldpath"
)

// setPath appends d to dst with the value at path made v; a missing v takes the field out. Documents on the way are made
// where there are none, in place of anything else that stands there.
func setPath(dst []byte, d bson.Doc, path fieldpath.Path, v bson.Value) []byte {
	return setFrom(dst, d, path, 0, v)
}

func setFrom(dst []byte, d bson.Doc, path fieldpath.Path, i int, v bson.Value) []byte {
	start := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	name, found := path.Part(i), false
	for it := d.Iter(); it.Next(); {
		if found || it.Key() != name {
			dst = appendElement(dst, it.Key(), it.Value())
			continue
		}
		found = true
		dst = setElement(dst, it.Value(), path, i, v)
	}
	if !found {
		dst = setElement(dst, bson.Missing, path, i, v)
	}
	dst = append(dst, 0)
	binary.LittleEndian.PutUint32(dst[start:], uint32(len(dst)-start))
	return dst
}

// setElement appends the element for component i, whose value so far is old.
func setElement(dst []byte, old bson.Value, path fieldpath.Path, i int, v bson.Value) []byte {
	if i == path.Len()-1 {
		return appendElement(dst, path.Part(i), v)
	}
	below := bson.EmptyDoc
	if old.Type == bson.TypeObject {
		below = old.Doc()
	} else if v.IsMissing() {
		return appendElement(dst, path.Part(i), old)
	}
	dst = append(dst, byte(bson.TypeObject))
	dst = append(append(dst, path.Part(i)...), 0)
	return setFrom(dst, below, path, i+1, v)
}

func appendElement(dst []byte, key string, v bson.Value) []byte {
	if v.IsMissing() {
		return dst
	}
	dst = append(dst, byte(v.Type))
	dst = append(append(dst, key...), 0)
	return append(dst, v.Data...)
}
