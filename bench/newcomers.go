package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"
)

// newcomersVerb has this program be the clients that log in. They have a process of their own: hashing a password costs a client some ten
// milliseconds of a processor, and where that is done beside the finds it is the finds' client that is measured, and not the server.
const newcomersVerb = "newcomers"

// coming is what the other process is told.
type coming struct {
	URL      string
	Database string
	Logins   int
	Within   time.Duration
}

// came is what it answers when all are there.
type came struct {
	Logins, Late         int64
	P50, P99, P999, Most time.Duration
	CPU                  time.Duration
}

// beNewcomers is that process. The clients stay until its input ends.
func beNewcomers(ctx context.Context, in io.Reader, out io.Writer) error {
	input := bufio.NewReader(in)
	n := &newcomers{}
	if err := readTask(input, &n.coming); err != nil {
		return err
	}
	defer n.leave()
	answer, err := n.come(ctx)
	if err != nil {
		return fmt.Errorf("log in: %w", err)
	}
	if err := json.NewEncoder(out).Encode(answer); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, input)
	return err
}

// newcomers are the clients that log in.
type newcomers struct {
	coming
	took sharedHistogram

	mu   sync.Mutex // guards here
	here []*mongo.Client
}

// come has them come evenly over the time.
func (n *newcomers) come(ctx context.Context) (came, error) {
	ctx, stop := context.WithTimeout(ctx, n.Within)
	defer stop()
	open := openLoop{rate: float64(n.Logins) / n.Within.Seconds()}
	err := open.run(ctx, func(int64) func(context.Context) error { return n.one }, func(begin, end time.Time) { n.took.add(end.Sub(begin)) })
	return came{Logins: n.took.n, Late: open.late.Load(), P50: n.took.quantile(0.50), P99: n.took.quantile(0.99), P999: n.took.quantile(0.999),
		Most: n.took.most, CPU: ownCPU()}, err
}

// one has a client come. Each is one of its own, so that it hashes its password itself.
func (n *newcomers) one(ctx context.Context) error {
	client, err := mongo.Connect(options.Client().ApplyURI(n.URL).SetMaxPoolSize(1).SetServerMonitoringMode("poll").SetHeartbeatInterval(time.Hour).
		SetAuth(options.Credential{AuthMechanism: "SCRAM-SHA-256", AuthSource: n.Database, Username: loginUser, Password: loginUser}))
	if err != nil {
		return err
	}
	n.mu.Lock()
	n.here = append(n.here, client)
	n.mu.Unlock()
	return client.Ping(ctx, readpref.Primary())
}

// leave ends their connections.
func (n *newcomers) leave() {
	ctx, stop := context.WithTimeout(context.Background(), stopLimit)
	defer stop()
	var crew sync.WaitGroup
	for _, client := range n.here {
		crew.Go(func() { _ = client.Disconnect(ctx) })
	}
	crew.Wait()
}
