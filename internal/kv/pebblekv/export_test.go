package pebblekv

import "github.com/ebbdb/ebb/internal/kv/overlay"

// Excise does to a deleted range what the reclaimer does in its time.
func (e *Engine) Excise(start, end []byte) (isEmpty, isRead bool, err error) {
	return e.commits.excise(overlay.Range{Start: start, End: end})
}

// Flush writes what is in memory to tables.
func (e *Engine) Flush() error { return e.db.Flush() }
