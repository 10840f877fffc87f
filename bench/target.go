package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/ebbdb/ebb/e2e/launch"
)

const (
	startLimit = 20 * time.Second
	stopLimit  = 30 * time.Second
)

// target is the server that is measured.
type target struct {
	client  *mongo.Client
	url     string
	version string
	pids    []int
	data    string // its folder, where that is known
	ebbTTL  bool   // it answers the command ebbTTL
	own     *ownServer
}

// ownServer is an ebb that this program has started.
type ownServer struct {
	*launch.Server
	folder string // goes away with it
}

// reach connects to the server of -url, or starts one.
func reach(ctx context.Context, s *settings, member bool) (*target, error) {
	t := &target{pids: s.pids, data: s.data}
	url := s.url
	if url == "" {
		own, err := startOwn(ctx, s, member)
		if err != nil {
			return nil, err
		}
		t.own, t.pids, t.data = own, []int{own.PID()}, filepath.Join(own.folder, "data")
		url = own.URI("directConnection=true")
	}
	t.url = url
	if err := t.connect(ctx, url); err != nil {
		return nil, errors.Join(err, t.close())
	}
	return t, nil
}

func (t *target) connect(ctx context.Context, url string) (err error) {
	if t.client, err = mongo.Connect(options.Client().ApplyURI(url)); err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	var info struct{ Version, EbbVersion string }
	admin := t.client.Database("admin")
	if err := admin.RunCommand(ctx, bson.D{{Key: "buildInfo", Value: 1}}).Decode(&info); err != nil {
		return fmt.Errorf("buildInfo: %w", err)
	}
	t.version = strings.TrimSpace(info.Version + " " + info.EbbVersion)
	t.ebbTTL = admin.RunCommand(ctx, bson.D{{Key: "ebbTTL", Value: 1}}).Err() == nil
	return nil
}

func (t *target) close() error {
	var err error
	if t.client != nil {
		ctx, cancel := context.WithTimeout(context.Background(), stopLimit)
		defer cancel()
		err = t.client.Disconnect(ctx)
	}
	if t.own != nil {
		err = errors.Join(err, t.own.stop())
	}
	return err
}

func startOwn(ctx context.Context, s *settings, member bool) (*ownServer, error) {
	folder, err := os.MkdirTemp("", "ebb-bench-")
	if err != nil {
		return nil, err
	}
	args := append([]string{"serve", "--port", "0", "--quiet", "--dbpath", filepath.Join(folder, "data")}, strings.Fields(s.serve)...)
	if member && !strings.Contains(s.serve, "--replSet") {
		args = append(args, "--replSet", "bench", "--replSetInitiate")
	}
	cmd := exec.Command(s.ebb, args...)
	setApart(cmd)
	server, err := launch.Start(ctx, cmd)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%w (build it with make build, or give -ebb or -url)", err), os.RemoveAll(folder))
	}
	return &ownServer{server, folder}, nil
}

// stop ends the server and removes its folder.
func (o *ownServer) stop() error {
	err := o.Stop()
	if err != nil {
		err = fmt.Errorf("%w\n%s", err, o.Log())
	}
	return errors.Join(err, os.RemoveAll(o.folder))
}
