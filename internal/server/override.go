package server

import (
	"net"
	"net/netip"
	"slices"
)

// override is those whose connections are not bounded by how many there may be: so who looks after a server that others have filled comes in.
type override struct {
	ranges []netip.Prefix
	paths  []string
}

// newOverride reads addresses and ranges of them. What is neither is the path of a Unix domain socket.
func newOverride(texts []string) (o override) {
	for _, text := range texts {
		if p, err := netip.ParsePrefix(text); err == nil {
			o.ranges = append(o.ranges, p.Masked())
		} else if a, err := netip.ParseAddr(text); err == nil {
			o.ranges = append(o.ranges, netip.PrefixFrom(a, a.BitLen()))
		} else {
			o.paths = append(o.paths, text)
		}
	}
	return o
}

func (o *override) has(socket net.Conn) bool {
	if local := socket.LocalAddr(); local.Network() == "unix" {
		return slices.Contains(o.paths, local.String())
	}
	from, err := netip.ParseAddrPort(socket.RemoteAddr().String())
	return err == nil && slices.ContainsFunc(o.ranges, func(p netip.Prefix) bool { return p.Contains(from.Addr().Unmap().WithZone("")) })
}
