package index

import (
	"bytes"
	"slices"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/keystring"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/textsearch"
)

// Keys are the keys of one document in one index: key strings without record id, in order, each once. It is reused
// from document to document.
type Keys struct {
	buf  []byte
	bits []byte
	keys []keySpan
	// Ask, unless nil, may end the making of keys of large shapes by an error.
	Ask func() error
	// Multikey has for each field a bit for each component of its path that went through an array.
	Multikey []uint64

	// The paths at which a wildcard met an array.
	pathBuf []byte
	paths   []span

	fields []cursor
	values []bson.Value
	terms  []textsearch.Term
}

type keySpan struct{ from, to, bitsFrom, bitsTo int }

type span struct{ from, to int }

// Limits on the keys of one document in one index, and on the bytes of those that it makes on the way.
const (
	MaxKeys     = 100_000
	maxKeyBytes = 64 << 20
)

// Len is the number of keys.
func (k *Keys) Len() int { return len(k.keys) }

// Key is the i-th key string.
func (k *Keys) Key(i int) []byte { return k.buf[k.keys[i].from:k.keys[i].to] }

// TypeBits is what the i-th key string needs beside it to be decoded exactly.
func (k *Keys) TypeBits(i int) []byte { return k.bits[k.keys[i].bitsFrom:k.keys[i].bitsTo] }

func (k *Keys) path(i int) []byte { return k.pathBuf[k.paths[i].from:k.paths[i].to] }

// Paths are the paths at which a wildcard met an array; some may be there more than once.
func (k *Keys) Paths() []string {
	out := make([]string, len(k.paths))
	for i := range k.paths {
		out[i] = string(k.path(i))
	}
	return out
}

func (k *Keys) addPath(path []byte) {
	from := len(k.pathBuf)
	k.pathBuf = append(k.pathBuf, path...)
	k.paths = append(k.paths, span{from, len(k.pathBuf)})
}

// IsMultikey says whether any field went through an array.
func (k *Keys) IsMultikey() bool {
	if len(k.paths) > 0 {
		return true
	}
	for _, m := range k.Multikey {
		if m != 0 {
			return true
		}
	}
	return false
}

// Keys fills k with the keys of doc. A document that the partial filter or sparseness leaves out has none; one that the
// index cannot hold is the error of its kind.
func (d *Definition) Keys(doc bson.Doc, k *Keys) error {
	k.reset(len(d.Fields))
	if !d.Covers(doc) {
		return nil
	}
	if err := d.appendKeys(doc, k); err != nil {
		return err
	}
	if len(k.keys) > 1 {
		k.sort()
	}
	if len(k.keys) > MaxKeys {
		return d.tooManyKeys()
	}
	return nil
}

func (d *Definition) tooManyKeys() error {
	return mongoerr.New(mongoerr.CannotBuildIndexKeys, "Index key generation for index '%s' exceeded the maximum of %d keys", d.Name, MaxKeys)
}

// appendKeys has a case for each kind that Built says is kept by keys.
func (d *Definition) appendKeys(doc bson.Doc, k *Keys) error {
	switch d.Kind {
	case Ordered:
		return d.orderedKeys(doc, k)
	case Hashed:
		return d.hashedKeys(doc, k)
	case Text:
		return d.textKeys(doc, k)
	case Geo2D:
		return d.flatKeys(doc, k)
	case Geo2DSphere:
		return d.sphereKeys(doc, k)
	case Wildcard:
		return d.wildcardKeys(doc, k)
	}
	return nil
}

func (k *Keys) reset(fields int) {
	k.buf, k.bits, k.keys = k.buf[:0], k.bits[:0], k.keys[:0]
	k.pathBuf, k.paths = k.pathBuf[:0], k.paths[:0]
	k.Multikey = append(k.Multikey[:0], make([]uint64, fields)...)
}

func (k *Keys) sort() {
	compare := func(a, b keySpan) int { return bytes.Compare(k.buf[a.from:a.to], k.buf[b.from:b.to]) }
	slices.SortStableFunc(k.keys, compare)
	k.keys = slices.CompactFunc(k.keys, func(a, b keySpan) bool { return compare(a, b) == 0 })
}

// add adds the key made of a value for each field of d. What is there twice goes when there is much of it.
func (k *Keys) add(d *Definition, values []bson.Value) error {
	if len(k.keys) >= 2*MaxKeys {
		if k.sort(); len(k.keys) > MaxKeys {
			return d.tooManyKeys()
		}
	}
	s := keySpan{from: len(k.buf), bitsFrom: len(k.bits)}
	for i, v := range values {
		k.buf = d.AppendKey(k.buf, i, v)
	}
	k.bits = keystring.AppendTypeBits(k.bits, values...)
	s.to, s.bitsTo = len(k.buf), len(k.bits)
	k.keys = append(k.keys, s)
	if len(k.buf) > maxKeyBytes {
		return mongoerr.New(mongoerr.CannotBuildIndexKeys, "Index key generation for index '%s' exceeded the maximum of %d bytes", d.Name, maxKeyBytes)
	}
	return nil
}

// AppendKey appends the key string of v as the value of the i-th field.
func (d *Definition) AppendKey(dst []byte, i int, v bson.Value) []byte {
	if d.collator != nil && !d.Fields[i].Plain {
		return keystring.AppendCollated(dst, v, d.Fields[i].Descending, d.collator)
	}
	return keystring.Append(dst, v, d.Fields[i].Descending)
}

// KeyValue is a key as a duplicate key error shows it. Under a collation strings cannot be had back from a key.
func (d *Definition) KeyValue(key []byte, typeBits []byte) (bson.Doc, error) {
	d = d.kept()
	vs, _, err := keystring.Decode(nil, key, typeBits, len(d.Fields))
	if err != nil {
		return nil, err
	}
	b := bson.Build()
	for i, f := range d.Fields {
		b.Value(f.Path, vs[i])
	}
	return b.Doc(), nil
}
