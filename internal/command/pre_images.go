package command

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/replset"
	"github.com/ebbdb/ebb/internal/storage/memberlog"
	"github.com/ebbdb/ebb/internal/storage/oplog"
)

// expireImagesEvery is how often images of documents are looked through for those that nobody needs any more.
const expireImagesEvery = 10 * time.Second

// dropImages deletes the images of changes that the oplog does not tell of any more, and those that are older than the cluster
// parameter changeStreamOptions says.
func (s *Server) dropImages(ctx context.Context) error {
	if s.Replica.View().State != replset.Primary {
		return nil
	}
	before, err := memberlog.Oldest(ctx, s.Query.Store)
	if err != nil {
		return err
	}
	if after := s.cluster.imagesExpireAfter(); after > 0 {
		if seconds := clock.Millis(s.Clock)/1000 - after; seconds > 0 {
			before = max(before, oplog.NewTimestamp(uint32(seconds), 0))
		}
	}
	began := clock.Wall().Now()
	dropped, err := memberlog.DropImages(ctx, s.Query.Store, before)
	s.purge.add(dropped, clock.Since(clock.Wall(), began))
	return err
}

// purge is what was done to keep images no longer than they are needed.
type purge struct{ passes, images, bytes, millis atomic.Int64 }

func (p *purge) add(d memberlog.Dropped, took time.Duration) {
	p.passes.Add(1)
	p.images.Add(d.Images)
	p.bytes.Add(d.Bytes)
	p.millis.Add(took.Milliseconds())
}

func (op *Op) preImagesSection(b *bson.Builder) {
	p := &op.purge
	b.Object("purgingJob").Int64("totalPass", p.passes.Load()).Int64("docsDeleted", p.images.Load()).Int64("bytesDeleted", p.bytes.Load()).
		Int64("scannedCollections", p.passes.Load()).Int64("scannedInternalCollections", 0).Int64("maxStartWallTimeMillis", 0).
		Int64("timeElapsedMillis", p.millis.Load()).End()
	if op.Replica == nil {
		return
	}
	images, err := op.measureImages()
	if err != nil {
		return // what can be told is told
	}
	if after := op.cluster.imagesExpireAfter(); after > 0 {
		b.Int64("expireAfterSeconds", after)
	}
	b.Int64("numDocs", images.Stored).Int64("totalBytes", images.DataBytes)
	if images.Stored > 0 {
		b.Int32("avgDocSize", int32(images.DataBytes/images.Stored))
	}
	b.Int64("docsInserted", op.Query.Store.ImagesKept()).Int64("storageSize", storageSize(images)).Int64("freeStorageSize", 0)
}

// measureImages says how many images there are, and how large they are.
func (op *Op) measureImages() (*collectionStats, error) {
	view, err := op.Query.Store.View(op.Ctx)
	if err != nil {
		return nil, err
	}
	defer view.Release()
	r, ok := view.Collection(catalog.PreImagesNS)
	if !ok {
		return &collectionStats{}, nil
	}
	return measure(r)
}

// imagesExpireAfter is for how many seconds images are kept, 0 for as long as the oplog tells of their changes.
func (c *clusterParameters) imagesExpireAfter() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	images := c.mu.set["changeStreamOptions"].doc.Lookup("preAndPostImages")
	if images.Type != bson.TypeObject {
		return 0
	}
	if v := images.Doc().Lookup("expireAfterSeconds"); v.IsNumber() {
		return v.TruncInt64()
	}
	return 0
}
