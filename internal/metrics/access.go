package metrics

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// refuses is why the figures are not for the one who asks; "" when they are.
//
// Figures name collections and tell how much is going on, so where clients have to log in not everybody gets them: who asks from this
// machine does. But a browser on this machine asks for whatever page is open in it, which may have its own name lead here (DNS
// rebinding): who asks from here has to call the server by an address, or by a name that is known to be its own.
func (h *Handler) refuses(r *http.Request) string {
	local := isLocal(r.RemoteAddr)
	switch {
	case local && !h.isOwnHost(r.Host):
		return "this server is not known by that name"
	case !local && h.opts.Authorization:
		return "where clients have to log in, figures are only for this machine"
	}
	return ""
}

// isOwnHost says whether a request's Host is this server. An address is: only names can be made to lead elsewhere.
func (h *Handler) isOwnHost(hostPort string) bool {
	host := hostPort
	if name, _, err := net.SplitHostPort(hostPort); err == nil {
		host = name
	}
	host = strings.ToLower(strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"))
	return net.ParseIP(host) != nil || host == "localhost" || slices.Contains(h.opts.Names, host)
}

// isLocal says whether an address is this machine's own.
func isLocal(remote string) bool {
	a, err := netip.ParseAddrPort(remote)
	return err == nil && a.Addr().Unmap().IsLoopback()
}
