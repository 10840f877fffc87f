package command

import (
	"context"
	"time"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/replset"
	"github.com/ebbdb/ebb/internal/serverlog"
	"github.com/ebbdb/ebb/internal/storage/memberlog"
	"github.com/ebbdb/ebb/internal/storage/oplog"
)

// expireImagesEvery is how often images of documents are looked through for those that nobody needs any more.
const expireImagesEvery = 10 * time.Second

// expireImages deletes the images that are too old, until ctx ends.
func (s *Server) expireImages(ctx context.Context) {
	for clock.Wait(ctx, s.Clock, expireImagesEvery) == nil {
		if err := s.dropImages(ctx); err != nil && ctx.Err() == nil {
			s.Log.Error("Images of documents could not be deleted", "error", serverlog.Client(err.Error()))
		}
	}
}

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
	_, err = memberlog.DropImages(ctx, s.Query.Store, before)
	return err
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
