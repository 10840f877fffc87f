package command

import (
	"github.com/ebbdb/ebb/internal/auth/privilege"
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/storage"
)

func dbStatsCommands() []*Command {
	return []*Command{{Name: "dbStats", Aliases: []string{"dbstats"}, Needs: Needs{OnDatabase: actions(privilege.DBStats)}, Doc: "Measures a database.", ReadConcern: true, Run: dbStats}}
}

// databaseSums are figures of all collections of a database together.
type databaseSums struct {
	collections, views, objects, stored, indexes int64
	data, storage, index                         int64
}

func dbStats(op *Op) (bson.Doc, error) {
	a := op.Args
	a.Ignore(op.Name())
	scale := a.scale()
	free := a.SafeBool("freeStorage", false)
	if err := a.Done(); err != nil {
		return nil, err
	}
	view, err := op.Query.Store.ViewAt(op.Ctx, op.Now)
	if err != nil {
		return nil, err
	}
	defer view.Close()
	sums, err := sumDatabase(view, op.DB)
	if err != nil {
		return nil, err
	}
	return sums.reply(op, scale, free), nil
}

func sumDatabase(view *storage.View, db string) (s databaseSums, err error) {
	for _, c := range view.Catalog().Collections(db) {
		if c.IsView() {
			s.views++
			continue
		}
		r, ok := view.CollectionByID(c.ID)
		if !ok {
			continue
		}
		st, err := measure(r)
		if err != nil {
			return s, err
		}
		s.collections++
		s.objects += st.Documents
		s.stored += st.Stored
		s.indexes += int64(len(c.Indexes))
		s.data += st.DataBytes
		s.storage += storageSize(st)
		s.index += indexSize(st)
	}
	if s.views > 0 {
		s.collections++ // system.views
		s.indexes++
	}
	return s, nil
}

func (s databaseSums) reply(op *Op, scale int64, free bool) bson.Doc {
	scaled := func(n int64) float64 { return float64(n / scale) }
	b := bson.Build().String("db", op.DB).Int64("collections", s.collections).Int64("views", s.views).Int64("objects", s.objects)
	average := 0.0
	if s.stored > 0 {
		average = float64(s.data) / float64(s.stored)
	}
	b.Double("avgObjSize", average).Double("dataSize", scaled(s.data)).Double("storageSize", scaled(s.storage))
	if free {
		b.Double("freeStorageSize", 0)
	}
	b.Int64("indexes", s.indexes).Double("indexSize", scaled(s.index))
	if free {
		b.Double("indexFreeStorageSize", 0)
	}
	b.Double("totalSize", scaled(s.storage+s.index))
	if free {
		b.Double("totalFreeStorageSize", 0)
	}
	b.Int64("scaleFactor", scale)
	if used, whole, ok := diskSpace(op.DBPath); ok && s.collections > 0 {
		b.Double("fsUsedSize", scaled(used)).Double("fsTotalSize", scaled(whole))
	}
	return b.Doc()
}

// FreeDisk is how much room is on the disk that path is on, 0 where nobody knows.
func FreeDisk(path string) int64 {
	used, whole, ok := diskSpace(path)
	if !ok {
		return 0
	}
	return whole - used
}
