package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

const (
	startLimit = 20 * time.Second
	stopLimit  = 30 * time.Second
	logKept    = 16 << 10 // bytes of the server's log that are shown when it fails
)

// target is the server that is measured.
type target struct {
	client  *mongo.Client
	version string
	pids    []int
	data    string // its folder, where that is known
	ebbTTL  bool   // it answers the command ebbTTL
	own     *ownServer
}

// ownServer is an ebb that this program has started.
type ownServer struct {
	cmd    *exec.Cmd
	folder string // goes away with it
	log    *serverLog
	gone   chan struct{} // closed once it has been waited for
}

// reach connects to the server of -url, or starts one.
func reach(ctx context.Context, s *settings) (*target, error) {
	t := &target{pids: s.pids, data: s.data}
	url := s.url
	if url == "" {
		own, addr, err := startOwn(ctx, s)
		if err != nil {
			return nil, err
		}
		t.own, t.pids, t.data = own, []int{own.cmd.Process.Pid}, filepath.Join(own.folder, "data")
		url = "mongodb://" + addr + "/?directConnection=true"
	}
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

func startOwn(ctx context.Context, s *settings) (own *ownServer, addr string, err error) {
	folder, err := os.MkdirTemp("", "ebb-bench-")
	if err != nil {
		return nil, "", err
	}
	args := append([]string{"serve", "--port", "0", "--quiet", "--dbpath", filepath.Join(folder, "data")}, strings.Fields(s.serve)...)
	own = &ownServer{cmd: exec.Command(s.ebb, args...), folder: folder, log: &serverLog{listening: make(chan string, 1)}, gone: make(chan struct{})}
	own.cmd.Stdout, own.cmd.Stderr = own.log, own.log
	setApart(own.cmd)
	if err := own.cmd.Start(); err != nil {
		return nil, "", errors.Join(fmt.Errorf("start the server: %w (build it with make build, or give -ebb or -url)", err), os.RemoveAll(folder))
	}
	go func() {
		defer close(own.gone)
		_ = own.cmd.Wait() // how it ended is read from ProcessState
	}()
	if addr, err = own.address(ctx); err != nil {
		return nil, "", errors.Join(err, own.stop())
	}
	return own, addr, nil
}

func (o *ownServer) address(ctx context.Context) (string, error) {
	select {
	case addr := <-o.log.listening:
		return addr, nil
	case <-o.gone:
		return "", fmt.Errorf("the server ended at once: %v\n%s", o.cmd.ProcessState, o.log)
	case <-time.After(startLimit):
		return "", fmt.Errorf("no line with an address after %v\n%s", startLimit, o.log)
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// stop ends the server and removes its folder.
func (o *ownServer) stop() (err error) {
	_ = o.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	select {
	case <-o.gone:
		if code := o.cmd.ProcessState.ExitCode(); code != 0 {
			err = fmt.Errorf("the server ended with exit status %d\n%s", code, o.log)
		}
	case <-time.After(stopLimit):
		_ = o.cmd.Process.Kill()
		<-o.gone
		err = fmt.Errorf("the server still ran %v after SIGTERM", stopLimit)
	}
	return errors.Join(err, os.RemoveAll(o.folder))
}

// serverLog keeps the end of a server's output and finds the address in it.
type serverLog struct {
	listening chan string

	mu struct { // guards all below
		sync.Mutex
		text bytes.Buffer
		told bool
	}
}

var loopback = regexp.MustCompile(`\b127\.0\.0\.1:([1-9][0-9]*)\b`)

func (l *serverLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.text.Write(p)
	if !l.mu.told {
		whole := l.mu.text.Bytes()[:bytes.LastIndexByte(l.mu.text.Bytes(), '\n')+1] // a port may be cut in the middle
		if found := loopback.Find(whole); found != nil {
			l.mu.told = true
			l.listening <- string(found)
		}
	}
	if over := l.mu.text.Len() - logKept; over > 0 {
		l.mu.text.Next(over)
	}
	return len(p), nil
}

func (l *serverLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.text.String()
}
