package query

import (
	"context"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/storage"
)

// maxViolations bounds what Duplicates returns.
const maxViolations = 100

// Duplicates finds the documents that would be in each other's way if an index were unique: the _ids of those that share a
// key, a group for each such key. There are at most maxViolations groups, of as many _ids.
func (e *Engine) Duplicates(ctx context.Context, ns namespace.NS, d *index.Definition) (groups [][]bson.Value, err error) {
	v, err := e.Store.View(ctx)
	if err != nil {
		return nil, err
	}
	defer v.Close()
	r, ok := v.Collection(ns)
	if !ok {
		return nil, mongoerr.New(mongoerr.NamespaceNotFound, "ns not found: %s", ns)
	}
	c, err := r.ScanIndex(storage.IndexScan{Index: d})
	if err != nil {
		return nil, err
	}
	defer c.Close()
	var key []byte
	var ids []storage.RecordID
	for c.Next() && len(groups) < maxViolations {
		entry := c.Entry()
		if key == nil || string(entry.Key) != string(key) {
			if groups, err = addGroup(r, groups, ids); err != nil {
				return nil, err
			}
			key, ids = append(key[:0:0], entry.Key...), ids[:0]
		}
		if len(ids) < maxViolations {
			ids = append(ids, entry.RecordID.Clone())
		}
	}
	if err := c.Err(); err != nil {
		return nil, err
	}
	return addGroup(r, groups, ids)
}

func addGroup(r *storage.Reader, groups [][]bson.Value, ids []storage.RecordID) ([][]bson.Value, error) {
	if len(ids) < 2 || len(groups) == maxViolations {
		return groups, nil
	}
	var group []bson.Value
	for _, id := range ids {
		rec, ok, err := r.Get(id)
		if err != nil {
			return nil, err
		}
		if ok {
			group = append(group, rec.Doc.Lookup("_id").Clone())
		}
	}
	return append(groups, group), nil
}
