package exec

import (
	"context"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/changestream"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/storage"
	"github.com/ebbdb/ebb/internal/storage/oplog"
	"github.com/ebbdb/ebb/internal/storage/preimage"
)

// noDocument stands where an image was asked for and is not there.
func noDocument() bson.Value { return bson.Value{Type: bson.TypeNull} }

// images are those that the event carries: the document that an update has left, and the one that there was before the change; missing
// where nobody asked for them.
func (s *Changes) images(ctx context.Context, event *changestream.Event) (full, before bson.Value, err error) {
	updates := event.Type == changestream.Update
	if !updates && event.Type != changestream.Replace && event.Type != changestream.Delete {
		return bson.Missing, bson.Missing, nil
	}
	wantsFull := updates && s.spec.FullDocument != changestream.Off
	wantsBefore := s.spec.BeforeChange != changestream.Off
	if !wantsFull && !wantsBefore {
		return bson.Missing, bson.Missing, nil
	}
	view, err := s.src.View(ctx)
	if err != nil {
		return bson.Missing, bson.Missing, err
	}
	var image bson.Doc
	if uuid, ok := event.UUID(); ok && (wantsBefore || s.spec.FullDocument != changestream.UpdateLookup) {
		if image, err = preimage.Read(view, uuid, s.entry, s.index); err != nil {
			return bson.Missing, bson.Missing, err
		}
	}
	if wantsBefore {
		if before = orNothing(image); image == nil && s.spec.BeforeChange == changestream.Required {
			return full, before, noImage("pre-image for all update, delete and replace events, but the pre-image", event)
		}
	}
	switch {
	case !wantsFull:
	case s.spec.FullDocument == changestream.UpdateLookup:
		full, err = s.lookUp(view, event)
	case image != nil:
		var after bson.Doc
		if after, err = oplog.Apply(image, event.Delta()); err == nil {
			full = after.Value()
		}
	default:
		if full = noDocument(); s.spec.FullDocument == changestream.Required {
			err = noImage("post-image for all update events, but the post-image", event)
		}
	}
	return full, before, err
}

func orNothing(doc bson.Doc) bson.Value {
	if doc == nil {
		return noDocument()
	}
	return doc.Value()
}

func noImage(what string, event *changestream.Event) error {
	return mongoerr.New(mongoerr.NoMatchingDocument, "Change stream was configured to require a %s was not found for event: %s", what, event.Told())
}

// lookUp is the document of an update as it is now; null where it is not there any more.
func (s *Changes) lookUp(view *storage.View, event *changestream.Event) (bson.Value, error) {
	r, ok := view.Collection(event.NS)
	if !ok {
		return noDocument(), nil
	}
	if uuid, ok := event.UUID(); !ok || uuid != r.Catalog().UUID {
		return noDocument(), nil
	}
	rec, ok, err := r.GetByID(event.Key.Doc().Lookup("_id"))
	if !ok || err != nil {
		return noDocument(), err
	}
	return rec.Doc.Value(), nil
}
