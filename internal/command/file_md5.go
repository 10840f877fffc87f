package command

import (
	"crypto/md5"
	"encoding/hex"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/query"
)

func fileMD5Commands() []*Command {
	return []*Command{{Name: "filemd5", Needs: Needs{Also: needsFileMD5}, Doc: "The checksum of a file in GridFS.", ReadConcern: true, Run: fileMD5}}
}

// fileMD5 goes through a file's chunks in order.
func fileMD5(op *Op) (bson.Doc, error) {
	a := op.Args
	id := a.Value(op.Name())
	root, given := a.String("root")
	if !given {
		root = "fs"
	}
	a.ignoreRest()
	if err := a.Done(); err != nil {
		return nil, err
	}
	ns := namespace.NS{DB: op.DB, Coll: root + ".chunks"}
	if err := op.checkChunks(ns); err != nil {
		return nil, err
	}
	find := query.Find{NS: ns, Filter: bson.Build().Object("files_id").Value("$eq", id).End().Doc(), Sort: chunkOrder()}
	running, err := op.Query.Find(op.Ctx, find, op.call())
	if err != nil {
		return nil, err
	}
	defer running.Close()
	sum, n := md5.New(), int64(0)
	for ; ; n++ {
		chunk, err := running.Next(op.Ctx)
		if err != nil {
			return nil, err
		}
		if chunk == nil {
			break
		}
		data, err := chunkData(chunk, n)
		if err != nil {
			return nil, err
		}
		sum.Write(data)
	}
	return bson.Build().Number("numChunks", n).String("md5", hex.EncodeToString(sum.Sum(nil))).Doc(), nil
}

// checkChunks refuses to go through chunks that no index orders.
func (op *Op) checkChunks(ns namespace.NS) error {
	if err := readable(ns); err != nil {
		return err
	}
	coll := op.Query.Store.Catalog().Collection(ns)
	if coll == nil || coll.IsView() {
		return nil
	}
	for _, d := range coll.Indexes {
		if bson.CompareDocs(d.Key, chunkOrder(), nil) == 0 {
			return nil
		}
	}
	return mongoerr.New(mongoerr.BadValue, "need an index on %s", chunkOrder())
}

func chunkOrder() bson.Doc { return bson.Build().Int32("files_id", 1).Int32("n", 1).Doc() }

// chunkData is the data of the chunk that should be the nth.
func chunkData(chunk bson.Doc, n int64) ([]byte, error) {
	if at, _ := chunk.Lookup("n").AsInt64(); at != n {
		return nil, mongoerr.New(10040, "chunks out of order")
	}
	v := chunk.Lookup("data")
	if v.Type != bson.TypeBinary {
		return nil, mongoerr.New(50849, "The element that calls binDataClean() must be type of BinData")
	}
	_, data := v.Binary()
	return data, nil
}
