package walk

import "github.com/ebbdb/ebb/internal/kv"

// DeleteEach is DeleteRange for an engine whose transactions have none.
func DeleteEach(t kv.Txn, low, high []byte) error {
	it, err := t.NewIter(kv.IterOptions{Lower: low, Upper: high})
	if err != nil {
		return err
	}
	var keys [][]byte
	for it.Next() {
		keys = append(keys, append([]byte(nil), it.Key()...))
	}
	if err := it.Err(); err != nil {
		_ = it.Close() // the first error is the one to tell
		return err
	}
	for _, key := range keys {
		t.Delete(key)
	}
	return it.Close()
}
