package place

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ebbdb/ebb/internal/clock"
)

// TestStalledConnections: a connection on which nothing comes or goes fails. By its clock it has stood still for long.
func TestStalledConnections(t *testing.T) {
	here, there := net.Pipe()
	defer here.Close()
	defer there.Close()
	w := &watched{here, clock.NewFake(time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC))}
	if n, err := w.Read(make([]byte, 1)); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("read %d, %v", n, err)
	}
	if n, err := w.Write([]byte("x")); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("written %d, %v", n, err)
	}
}

// TestSilentRole: what should tell the machine's role, and is silent, is given up.
func TestSilentRole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, there := net.Pipe()
		defer here.Close()
		defer there.Close()
		c := roleClient()
		c.Transport = &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return here, nil }}
		_, err := c.Get("http://role.example.org/")
		var timeout net.Error
		if !errors.As(err, &timeout) || !timeout.Timeout() {
			t.Errorf("it says %v", err)
		}
	})
}
