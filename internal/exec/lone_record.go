package exec

import "github.com/ebbdb/ebb/internal/storage"

// loneRecord is what nodes have in common that give one record at most, which they need not look for.
type loneRecord struct {
	stats *Stats
	done  bool
}

// fetch gives the member its record. there is false when the node has come to its end.
func (n *loneRecord) fetch(r *reading, m *Member, get func(*storage.Reader) (storage.Record, bool, error)) (there bool, err error) {
	if n.done {
		return false, nil
	}
	n.done = true
	reader, err := r.reader()
	if err != nil {
		return false, err
	}
	if m.Record, there, err = get(reader); there {
		n.stats.Docs++
		r.seen.Docs++
	}
	return there, err
}

func (*loneRecord) park()        {}
func (*loneRecord) close() error { return nil }
