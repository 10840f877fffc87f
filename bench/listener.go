package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// listenerVerb has this program be a client that listens to a change stream.
const listenerVerb = "listener"

// listening is what it is told.
type listening struct {
	URL, Database, Collection string
	Events                    int64 // that it counts
}

// listens is what it answers when it hears, and heard when it has heard all.
type (
	listens struct{}
	heard   struct {
		First, Last time.Time     // event
		CPU         time.Duration // between these
	}
)

func beListener(ctx context.Context, in io.Reader, out io.Writer) error {
	input := bufio.NewReader(in)
	var l listening
	if err := readTask(input, &l); err != nil {
		return err
	}
	client, err := mongo.Connect(options.Client().ApplyURI(l.URL))
	if err != nil {
		return err
	}
	defer func() { _ = client.Disconnect(context.WithoutCancel(ctx)) }()
	stream, err := client.Database(l.Database).Collection(l.Collection).Watch(ctx, mongo.Pipeline{})
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	defer func() { _ = stream.Close(context.WithoutCancel(ctx)) }()
	answer := json.NewEncoder(out)
	if err := answer.Encode(listens{}); err != nil {
		return err
	}
	var h heard
	var before time.Duration
	for n := int64(0); n < l.Events; n++ {
		if !stream.Next(ctx) {
			return fmt.Errorf("listen: after %d events: %w", n, stream.Err())
		}
		if n == 0 {
			h.First, before = time.Now(), ownCPU()
		}
	}
	h.Last, h.CPU = time.Now(), ownCPU()-before
	if err := answer.Encode(h); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, input)
	return err
}
