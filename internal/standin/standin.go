// Package standin is what tests put in the place of the machine that a server runs on: its disk, and the network between members of a replica
// set. It knows nothing of servers.
package standin

import (
	"context"
	"net"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Machine is given to a server; what is nil is the machine's own.
type Machine struct {
	// Disk is where the store is, and the log of a member of a replica set.
	Disk vfs.FS
	// Listener is where clients come from, and other members.
	Listener net.Listener
	// Dial connects to another member.
	Dial func(ctx context.Context, host string) (net.Conn, error)
	// Lookup looks a name up.
	Lookup func(ctx context.Context, name string) ([]net.IPAddr, error)
}
