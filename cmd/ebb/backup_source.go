package main

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	driver "go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"

	"github.com/ebbdb/ebb/internal/backup"
	"github.com/ebbdb/ebb/internal/backup/repository"
	"github.com/ebbdb/ebb/internal/clock"
)

const (
	// dialTimeout is how long a server may take to be found, and endTimeout how long it is told that a checkpoint is not needed any more.
	dialTimeout = 10 * time.Second
	endTimeout  = 5 * time.Second
)

// maxCheckpointFiles bounds how many files a server may list.
const maxCheckpointFiles = 1 << 20

// remote is a server that is backed up, by the command ebbBackup.
type remote struct {
	client *mongo.Client
	admin  *mongo.Database
	name   string
}

// dial connects to a server.
func dial(ctx context.Context, uri string) (*remote, error) {
	client, err := mongo.Connect(driver.Client().ApplyURI(uri).SetAppName("ebb backup").SetServerSelectionTimeout(dialTimeout).SetReadPreference(readpref.Primary()))
	if err != nil {
		return nil, err
	}
	r := &remote{client: client, admin: client.Database("admin"), name: withoutSecrets(uri)}
	if err := client.Ping(ctx, nil); err != nil {
		r.close()
		return nil, fmt.Errorf("connect to %s: %w", r.name, err)
	}
	return r, nil
}

// withoutSecrets is an address, which the driver has taken, without user and password, and without options. It is what a repository tells servers
// apart by, so it is cut by hand: sockets and lists of hosts are in it, which package url refuses.
func withoutSecrets(uri string) string {
	scheme, rest, _ := strings.Cut(uri, "://")
	rest, _, _ = strings.Cut(rest, "/") // behind which options may have an @
	if _, hosts, ok := strings.Cut(rest, "@"); ok {
		rest = hosts
	}
	rest, _, _ = strings.Cut(rest, "?")
	return scheme + "://" + rest
}

func (r *remote) close() { _ = r.client.Disconnect(context.Background()) }

func (r *remote) Name() string { return r.name }

func (r *remote) run(ctx context.Context, reply any, step string, fields ...bson.E) error {
	err := r.admin.RunCommand(ctx, append(bson.D{{Key: "ebbBackup", Value: step}}, fields...)).Decode(reply)
	var refused mongo.CommandError
	if errors.As(err, &refused) && refused.Name == "CommandNotFound" {
		return fmt.Errorf("%s is no Ebb, or one that is too old: %w", r.name, err)
	}
	return err
}

func field(key string, value any) bson.E { return bson.E{Key: key, Value: value} }

// Begin is backup.Source's.
func (r *remote) Begin(ctx context.Context) (*backup.Checkpoint, error) {
	var reply struct {
		ID         string
		At, HeldAt time.Time
		Commit     int64
		EbbVersion string `bson:"ebbVersion"`
		LeaseSecs  int32  `bson:"leaseSecs"`
		Oplog      *struct{ From, To bson.Timestamp }
	}
	if err := r.run(ctx, &reply, "begin"); err != nil {
		return nil, err
	}
	c := &backup.Checkpoint{ID: reply.ID, At: reply.At, HeldAt: reply.HeldAt, Commit: reply.Commit, Ebb: reply.EbbVersion, Lease: time.Duration(reply.LeaseSecs) * time.Second}
	if o := reply.Oplog; o != nil {
		c.Oplog = &repository.Oplog{From: timestamp(o.From), To: timestamp(o.To)}
	}
	if err := r.list(ctx, c); err != nil {
		return nil, errors.Join(err, r.End(context.WithoutCancel(ctx), c.ID))
	}
	return c, nil
}

func timestamp(t bson.Timestamp) repository.Timestamp {
	return repository.Timestamp{Seconds: t.T, Counter: t.I}
}

func (r *remote) list(ctx context.Context, c *backup.Checkpoint) error {
	for {
		var reply struct {
			Files []struct {
				Name  string
				Bytes int64
			}
			More bool
		}
		if err := r.run(ctx, &reply, "files", field("id", c.ID), field("after", int64(len(c.Files)))); err != nil {
			return err
		}
		for _, f := range reply.Files {
			c.Files = append(c.Files, backup.CheckpointFile{Name: f.Name, Bytes: f.Bytes})
		}
		switch {
		case !reply.More:
			return nil
		case len(reply.Files) == 0 || len(c.Files) > maxCheckpointFiles:
			return fmt.Errorf("%s lists files without an end", r.name)
		}
	}
}

// Digest is backup.Source's.
func (r *remote) Digest(ctx context.Context, checkpoint, name string) (string, error) {
	var reply struct {
		SHA256 bson.Binary `bson:"sha256"`
	}
	err := r.run(ctx, &reply, "digest", field("id", checkpoint), field("name", name))
	return hex.EncodeToString(reply.SHA256.Data), err
}

// Read is backup.Source's.
func (r *remote) Read(ctx context.Context, checkpoint, name string, offset, bytes int64) ([]byte, error) {
	var reply struct{ Data bson.Binary }
	err := r.run(ctx, &reply, "read", field("id", checkpoint), field("name", name), field("offset", offset), field("bytes", bytes))
	return reply.Data.Data, err
}

// Renew is backup.Source's.
func (r *remote) Renew(ctx context.Context, checkpoint string) error {
	return r.run(ctx, &bson.D{}, "renew", field("id", checkpoint))
}

// End is backup.Source's.
func (r *remote) End(ctx context.Context, checkpoint string) error {
	ctx, cancel := clock.WithTimeout(ctx, clock.Wall(), endTimeout)
	defer cancel()
	return r.run(ctx, &bson.D{}, "end", field("id", checkpoint))
}
