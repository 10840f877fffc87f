package ebb

import (
	"context"
	"testing"

	driverbson "go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/cursor"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/storage/meaning"
)

// noDocuments is a source that has none.
type noDocuments struct{}

func (noDocuments) Next(context.Context) (bson.Doc, error) { return nil, nil }
func (noDocuments) Park()                                  {}
func (noDocuments) Held() int64                            { return 0 }
func (noDocuments) Shrink() error                          { return nil }
func (noDocuments) Close() error                           { return nil }

// TestADropEndsCursors: when a collection goes, its cursors fail. Its change streams are left to tell of it, and those of transactions,
// which go on to see it.
func TestADropEndsCursors(t *testing.T) {
	for _, kind := range []meaning.EventKind{meaning.CollectionDropped, meaning.CollectionRenamed} {
		cursors := cursor.NewRegistry(clock.Wall(), nil)
		ns := namespace.NS{DB: "d", Coll: "c"}
		plain := &cursor.Cursor{NS: ns.String(), TxnNumber: -1, Source: noDocuments{}}
		stream := &cursor.Cursor{NS: ns.String(), TxnNumber: -1, Watches: true, Source: noDocuments{}}
		inTransaction := &cursor.Cursor{NS: ns.String(), LSID: "one", Source: noDocuments{}}
		for _, c := range []*cursor.Cursor{plain, stream, inTransaction} {
			if err := cursors.Add(c); err != nil {
				t.Fatal(err)
			}
		}
		endCursors(cursors, meaning.Event{Kind: kind, NS: ns, To: namespace.NS{DB: "d", Coll: "e"}})
		if _, err := cursors.Take(plain.ID, ns.String(), "", false); !mongoerr.Is(err, mongoerr.QueryPlanKilled) {
			t.Error(err)
		}
		for _, c := range []*cursor.Cursor{stream, inTransaction} {
			if _, err := cursors.Take(c.ID, ns.String(), c.LSID, false); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestTransactionReadsOnBesideADrop: what a transaction has begun to read it reads to the end, whatever becomes of the collection.
func TestTransactionReadsOnBesideADrop(t *testing.T) {
	o := Options{Port: AnyPort, Engine: InMemory, ReplicaSet: &ReplicaSet{Name: "rs", Initiate: true, OplogBytes: 1 << 30}}
	asServer(t, o, func(_ *Server, client *mongo.Client) {
		db := client.Database("test")
		for name, end := range map[string]func(context.Context, *mongo.Collection) error{
			"dropped": func(ctx context.Context, c *mongo.Collection) error { return c.Drop(ctx) },
			"renamed": func(ctx context.Context, c *mongo.Collection) error {
				return client.Database("admin").RunCommand(ctx, driverbson.D{{Key: "renameCollection", Value: "test.renamed"}, {Key: "to", Value: "test.other"}}).Err()
			},
		} {
			coll := db.Collection(name)
			const documents = 10
			for i := range documents {
				if _, err := coll.InsertOne(t.Context(), driverbson.D{{Key: "_id", Value: i}}); err != nil {
					t.Fatal(err)
				}
			}
			err := client.UseSession(t.Context(), func(ctx context.Context) error {
				if err := mongo.SessionFromContext(ctx).StartTransaction(); err != nil {
					return err
				}
				found, err := coll.Find(ctx, driverbson.D{}, options.Find().SetBatchSize(2))
				if err != nil {
					return err
				}
				if err := end(t.Context(), coll); err != nil {
					return err
				}
				var all []driverbson.D
				if err := found.All(ctx, &all); err != nil {
					return err
				}
				if len(all) != documents {
					t.Errorf("%s: %d documents", name, len(all))
				}
				return mongo.SessionFromContext(ctx).CommitTransaction(ctx)
			})
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}
