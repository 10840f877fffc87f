package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"strconv"
	"strings"
)

// Socket is a Unix domain socket to listen on.
type Socket struct {
	// Path is where it is. One that ends in "/" is a folder: the socket's name tells the port there, as MongoDB's clients know it.
	Path string
	Mode fs.FileMode
}

// socketName is what MongoDB calls its socket.
func socketName(port int) string { return "mongodb-" + strconv.Itoa(port) + ".sock" }

// listenSockets adds Unix domain sockets to listeners, of whose port they are called, or of port where none has one. All are closed where one
// cannot be had.
func listenSockets(ctx context.Context, listeners []net.Listener, sockets []Socket, port int, log *slog.Logger) ([]net.Listener, error) {
	port = portOf(listeners, port)
	for _, s := range sockets {
		path := s.Path
		if strings.HasSuffix(path, "/") {
			path += socketName(port)
		}
		l, err := listenSocket(ctx, path, s.Mode)
		if errors.Is(err, errInUse) && path != s.Path {
			// Another server has the port on another address. MongoDB would take its socket away.
			log.Warn("Another server listens on the Unix domain socket of this port; this one has none", "path", path)
			continue
		}
		if err != nil {
			for _, open := range listeners {
				open.Close()
			}
			return nil, fmt.Errorf("failed to set up listener on %s: %w", path, err)
		}
		listeners = append(listeners, l)
	}
	return listeners, nil
}

// portOf is the port of the first listener that has one, or else the one that was asked for.
func portOf(listeners []net.Listener, asked int) int {
	for _, l := range listeners {
		if a, ok := l.Addr().(*net.TCPAddr); ok {
			return a.Port
		}
	}
	return asked
}

// errInUse is a socket that somebody listens on.
var errInUse = errors.New("address already in use")

// listenSocket makes a socket at path, for which one that nobody listens on any more makes room. Nobody whom mode does not let in can
// connect to it, not even for a moment.
func listenSocket(ctx context.Context, path string, mode fs.FileMode) (net.Listener, error) {
	if err := makeRoom(ctx, path); err != nil {
		return nil, err
	}
	config := net.ListenConfig{Control: restrict(mode)}
	l, err := config.Listen(ctx, "unix", path)
	if err != nil {
		if cause, ok := errors.AsType[*net.OpError](err); ok {
			err = cause.Err
		}
		return nil, err
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false) // it may be another's by then
	made, err := os.Lstat(path)
	if err == nil {
		err = os.Chmod(path, mode)
	}
	if err != nil {
		return nil, errors.Join(err, l.Close(), os.Remove(path))
	}
	return &socketListener{l, path, made}, nil
}

// makeRoom removes a socket that nobody listens on, and nothing else.
func makeRoom(ctx context.Context, path string) error {
	was, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return plain(err)
	case was.Mode().Type() != fs.ModeSocket:
		return errors.New("there is a file of that name that is no socket")
	}
	var d net.Dialer
	if c, err := d.DialContext(ctx, "unix", path); err == nil {
		c.Close()
		return errInUse
	} else if errors.Is(err, fs.ErrPermission) {
		return errInUse // another user's
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("failed to unlink socket file: %w", plain(err))
	}
	return nil
}

// plain is what went wrong without the path, which the caller says.
func plain(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}

// socketListener removes its socket when it is closed, unless another has taken its place.
type socketListener struct {
	net.Listener
	path string
	made fs.FileInfo
}

func (l *socketListener) Close() error {
	if now, err := os.Lstat(l.path); err == nil && os.SameFile(now, l.made) {
		_ = os.Remove(l.path)
	}
	return l.Listener.Close()
}
