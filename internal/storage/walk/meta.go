package walk

import (
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/storage/layout"
)

// Meta calls f for each key of a kind in the catalogue's span, without its first two bytes.
func Meta(r kv.Reader, kind byte, f func(key, value []byte) error) error {
	start := []byte{layout.MetaPrefix, kind}
	it, err := r.NewIter(kv.IterOptions{Lower: start, Upper: layout.After(start)})
	if err != nil {
		return err
	}
	defer it.Close()
	for it.Next() {
		value, err := it.Value()
		if err != nil {
			return err
		}
		if err := f(it.Key()[len(start):], value); err != nil {
			return err
		}
	}
	return it.Err()
}
