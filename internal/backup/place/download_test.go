package place

import (
	"errors"
	"net"
	"os"
	"testing"
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
