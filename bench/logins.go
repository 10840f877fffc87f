package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"
)

// loginUser logs in; the password is called so, too.
const loginUser = "ebbbench"

// logins compares finds by _id with such beside clients that come one after the other, log in by SCRAM-SHA-256, and stay. Each is a client of its own, so
// that it hashes its password itself: that costs more than what the server does for it.
type logins struct{}

func (*logins) prepare(ctx context.Context, b *bench) error {
	if err := b.db.RunCommand(ctx, bson.D{{Key: "dropAllUsersFromDatabase", Value: 1}}).Err(); err != nil {
		return err
	}
	err := b.db.RunCommand(ctx, bson.D{{Key: "createUser", Value: loginUser}, {Key: "pwd", Value: loginUser}, {Key: "roles", Value: bson.A{}}}).Err()
	if err != nil {
		return err
	}
	return b.load(ctx, b.db.Collection("docs"), 0, int64(b.docs))
}

func (w *logins) measure(ctx context.Context, b *bench) error {
	alone, err := w.finds(ctx, b, b.length)
	if err != nil {
		return err
	}
	if err := b.tell("-without", alone); err != nil {
		return err
	}
	c := &newcomers{bench: b}
	coming, stop := context.WithTimeout(ctx, b.loginsFor)
	defer stop()
	var crew sync.WaitGroup
	var failed error
	crew.Go(func() { failed = c.come(coming) })
	beside, err := w.finds(ctx, b, b.loginsFor)
	crew.Wait()
	c.leave()
	switch {
	case err != nil:
		return err
	case failed != nil:
		return fmt.Errorf("log in: %w", failed)
	}
	beside["logins"], beside["p99_per_alone"] = float64(c.in.Load()), beside["p99_ms"]/alone["p99_ms"]
	c.took.into(beside, "login_")
	return b.tell("", beside)
}

// finds looks documents up for so long, as many a second as the flag -probe says.
func (*logins) finds(ctx context.Context, b *bench, length time.Duration) (metrics, error) {
	one := findByID(b.db.Collection("docs"), int64(b.docs))
	work, stop := context.WithTimeout(ctx, b.warm+length)
	defer stop()
	warm := time.Now().Add(b.warm)
	took := &sharedHistogram{}
	open := openLoop{rate: b.probe}
	err := open.run(work, func(n int64) func(context.Context) error {
		return func(ctx context.Context) error { return one(ctx, dice(int(n))) }
	}, func(begin, end time.Time) {
		if begin.After(warm) {
			took.add(end.Sub(begin))
		}
	})
	out := metrics{"ops_s": float64(took.n) / length.Seconds(), "late": float64(open.late.Load())}
	took.into(out, "")
	return out, err
}

// newcomers are the clients that log in.
type newcomers struct {
	bench *bench
	in    atomic.Int64
	took  sharedHistogram
	mu    sync.Mutex // guards here
	here  []*mongo.Client
}

// come has them come evenly over the time.
func (c *newcomers) come(ctx context.Context) error {
	open := openLoop{rate: float64(c.bench.logins) / c.bench.loginsFor.Seconds()}
	return open.run(ctx, func(int64) func(context.Context) error { return c.one }, func(begin, end time.Time) {
		c.in.Add(1)
		c.took.add(end.Sub(begin))
	})
}

func (c *newcomers) one(ctx context.Context) error {
	client, err := mongo.Connect(options.Client().ApplyURI(c.bench.target.url).SetMaxPoolSize(1).SetServerMonitoringMode("poll").SetHeartbeatInterval(time.Hour).
		SetAuth(options.Credential{AuthMechanism: "SCRAM-SHA-256", AuthSource: c.bench.database, Username: loginUser, Password: loginUser}))
	if err != nil {
		return err
	}
	c.mu.Lock()
	c.here = append(c.here, client)
	c.mu.Unlock()
	return client.Ping(ctx, readpref.Primary())
}

// leave ends their connections.
func (c *newcomers) leave() {
	ctx, stop := context.WithTimeout(context.Background(), stopLimit)
	defer stop()
	var crew sync.WaitGroup
	for _, client := range c.here {
		crew.Go(func() { _ = client.Disconnect(ctx) })
	}
	crew.Wait()
}
