package command

import (
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
)

// TestStoredDefaults: the defaults are those that were stored, and what makes no sense in the collection is as if it were not there.
func TestStoredDefaults(t *testing.T) {
	h := member(t)
	h.ok(t, "admin", "{setDefaultRWConcern: 1, defaultReadConcern: {level: 'majority'}, defaultWriteConcern: {w: 3}}")
	h.server.defaults.Store(nil)
	if err := h.server.loadDefaults(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r := h.ok(t, "test", "{insert: 'c', documents: [{}]}"); r.Lookup("writeConcernError").IsMissing() {
		t.Error(r)
	}
	for write, source := range map[string]string{"{w: 1}": "global", "{w: 99}": "implicit", "{w: 'x', y: 1}": "implicit", "7": "implicit"} {
		h.ok(t, "config", "{update: 'settings', updates: [{q: {_id: 'ReadWriteConcernDefaults'}, u: {$set: {defaultWriteConcern: "+write+"}}}]}")
		r := h.ok(t, "admin", "{getDefaultRWConcern: 1}")
		if r.Lookup("defaultWriteConcernSource").Str() != source || r.Lookup("defaultReadConcern").Doc().Lookup("level").Str() != "majority" {
			t.Errorf("%s: %s", write, r)
		}
		if r := h.ok(t, "test", "{insert: 'c', documents: [{}]}"); r.Lookup("writeConcernError").Type != bson.TypeMissing {
			t.Error(r)
		}
	}
}

// TestStoredWriteBlock: writes that were blocked are blocked after a restart.
func TestStoredWriteBlock(t *testing.T) {
	h := member(t)
	h.ok(t, "admin", "{setUserWriteBlockMode: 1, global: true, reason: 'DiskUseThresholdExceeded'}")
	h.server.writesBlocked.Store(nil)
	if err := h.server.loadWriteBlock(t.Context()); err != nil {
		t.Fatal(err)
	}
	if b := h.server.writesBlocked.Load(); b == nil || b.reason != "DiskUseThresholdExceeded" {
		t.Error(b)
	}
	h.ok(t, "admin", "{setUserWriteBlockMode: 1, global: false, reason: 'DiskUseThresholdExceeded'}")
	if err := h.server.loadWriteBlock(t.Context()); err != nil || h.server.writesBlocked.Load() != nil {
		t.Error(err)
	}
}
