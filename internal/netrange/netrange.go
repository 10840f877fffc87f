// Package netrange tells whose a connection is by where it comes from: addresses, ranges of them in CIDR notation, and paths
// of Unix domain sockets.
package netrange

import (
	"net"
	"net/netip"
	"slices"
)

// Set is those that were named. The zero value is nobody.
type Set struct {
	ranges []netip.Prefix
	paths  []string
}

// New reads addresses and ranges of them. What is neither is the path of a Unix domain socket.
func New(texts []string) (s Set) {
	for _, text := range texts {
		if p, err := netip.ParsePrefix(text); err == nil {
			s.ranges = append(s.ranges, p.Masked())
		} else if a, err := netip.ParseAddr(text); err == nil {
			s.ranges = append(s.ranges, netip.PrefixFrom(a, a.BitLen()))
		} else {
			s.paths = append(s.paths, text)
		}
	}
	return s
}

// Peer is what is asked of a connection.
type Peer interface {
	LocalAddr() net.Addr
	RemoteAddr() net.Addr
}

// Has says whether the connection comes from one of s, or was accepted at a path of s.
func (s *Set) Has(socket Peer) bool {
	if local := socket.LocalAddr(); local.Network() == "unix" {
		return slices.Contains(s.paths, local.String())
	}
	from, err := netip.ParseAddrPort(socket.RemoteAddr().String())
	return err == nil && slices.ContainsFunc(s.ranges, func(p netip.Prefix) bool { return p.Contains(from.Addr().Unmap().WithZone("")) })
}
