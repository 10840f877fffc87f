package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	driver "go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"

	"github.com/ebbdb/ebb/internal/clock"
)

// errNotReady is a server that answers and that clients should not be sent to.
var errNotReady = errors.New("the server is a member of a replica set, and neither primary nor secondary")

// pingVerb asks a server whether clients should be sent to it, for containers and scripts. It logs in nowhere.
func pingVerb() *cobra.Command {
	var uri string
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "ping",
		Short: "Ask a server whether it is ready; the exit status says so",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			took, err := pingAt(cmd.Context(), uri, timeout)
			if err == nil {
				fmt.Fprintf(cmd.OutOrStdout(), "ready (%s)\n", took.Round(time.Microsecond*100))
			}
			return err
		},
	}
	cmd.Flags().StringVar(&uri, "uri", "mongodb://127.0.0.1:27017", "`address` of the server")
	cmd.Flags().DurationVar(&timeout, "timeout", 5*time.Second, "`time` that the server has to answer")
	return cmd
}

func pingAt(ctx context.Context, uri string, timeout time.Duration) (took time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	options := driver.Client().ApplyURI(uri)
	options.Auth = nil // a server that lets nobody in yet is ready all the same
	client, err := mongo.Connect(options.SetDirect(true).SetAppName("ebb ping").SetServerSelectionTimeout(timeout))
	if err != nil {
		return 0, optionError{fmt.Errorf("--uri: %w", err)}
	}
	defer func() { _ = client.Disconnect(context.WithoutCancel(ctx)) }()
	started := clock.Wall().Now()
	var hello struct{ IsWritablePrimary, Secondary bool }
	if err := client.Database("admin").RunCommand(ctx, bson.D{{Key: "hello", Value: 1}}, driver.RunCmd().SetReadPreference(readpref.Nearest())).Decode(&hello); err != nil {
		return 0, fmt.Errorf("%s does not answer: %w", withoutSecrets(uri), err)
	}
	if !hello.IsWritablePrimary && !hello.Secondary {
		return 0, errNotReady
	}
	return clock.Since(clock.Wall(), started), nil
}
