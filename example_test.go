package ebb_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/ebbtest"
)

// A server inside a program, for any client.
func Example() {
	server, err := ebb.Open(ebb.Options{Port: ebb.AnyPort, Engine: ebb.InMemory})
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx) }()

	client, err := mongo.Connect(options.Client().ApplyURI("mongodb://" + server.Addr()))
	if err != nil {
		log.Fatal(err)
	}
	sessions := client.Database("app").Collection("sessions")
	if _, err := sessions.InsertOne(ctx, bson.D{{Key: "user", Value: "ada"}, {Key: "createdAt", Value: time.Now()}}); err != nil {
		log.Fatal(err)
	}
	n, err := sessions.CountDocuments(ctx, bson.D{})
	fmt.Println(n, err)

	if err := client.Disconnect(ctx); err != nil {
		log.Fatal(err)
	}
	stop() // Serve lets operations finish
	if err := <-served; err != nil {
		log.Fatal(err)
	}
	if err := server.Close(); err != nil {
		log.Fatal(err)
	}
	// Output: 1 <nil>
}

// All that can be set is of public types: a log, parameters, a clock that is turned by hand.
func ExampleOptions() {
	clock := ebbtest.NewClock(time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC))
	server, err := ebb.Open(ebb.Options{
		Addresses:  []string{"127.0.0.1"},
		Port:       ebb.AnyPort,
		Engine:     ebb.InMemory,
		CacheBytes: 64 << 20,
		Parameters: map[string]string{"ttlMonitorSleepSecs": "5"},
		Log:        slog.New(slog.NewTextHandler(io.Discard, nil)),
		Clock:      clock,
		OnFailure:  func(err error) { log.Print(err) },
	})
	switch {
	case errors.Is(err, ebb.ErrInUse), errors.Is(err, ebb.ErrDamaged):
		log.Fatal("not this directory: ", err)
	case err != nil:
		log.Fatal(err)
	}
	fmt.Println(server.Err(), server.Close())
	// Output: <nil> <nil>
}
