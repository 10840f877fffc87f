package main

import (
	"context"
	"errors"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// loginUser logs in; the password is called so, too.
const loginUser = "ebbbench"

// logins compares finds by _id with such beside clients that come one after the other, log in by SCRAM-SHA-256, and stay.
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
	crowd, err := startOther(ctx, newcomersVerb, coming{URL: b.target.url, Database: b.database, Logins: b.logins, Within: b.loginsFor})
	if err != nil {
		return err
	}
	beside, err := w.finds(ctx, b, b.loginsFor)
	if err != nil {
		return errors.Join(err, crowd.end())
	}
	var c came
	err = crowd.await(&c)
	if err = errors.Join(err, crowd.end()); err != nil {
		return err
	}
	beside["logins"], beside["p99_per_alone"] = float64(c.Logins), beside["p99_ms"]/alone["p99_ms"]
	beside["login_p50_ms"], beside["login_p99_ms"], beside["login_p999_ms"], beside["login_max_ms"] = millis(c.P50), millis(c.P99), millis(c.P999), millis(c.Most)
	beside["login_late"], beside["login_client_us"] = float64(c.Late), micros(c.CPU)/float64(max(c.Logins, 1))
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
