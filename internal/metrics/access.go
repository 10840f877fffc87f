package metrics

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// refuses is why the figures are not for the one who asks, and the status that says so; "" when they are.
//
// Figures name collections and tell how much is going on, so where clients have to log in not everybody gets them: who asks from this
// machine does, and who shows by a name and a password, over TLS, to be a user that may run serverStatus.
//
// A browser on this machine asks for whatever page is open in it, which may have its own name lead here (DNS rebinding). So who asks from
// here has to call the server by an address, or by a name that is known to be its own.
func (h *Handler) refuses(r *http.Request) (status int, why string) {
	local := isLocal(r.RemoteAddr)
	switch {
	case local && !h.isOwnHost(r.Host):
		return http.StatusForbidden, "this server is not known by that name"
	case local || !h.opts.Authorization:
		return 0, ""
	case r.TLS == nil:
		return http.StatusForbidden, "where clients have to log in, figures are for this machine, and for users over TLS"
	}
	return h.refusesUser(r)
}

func (h *Handler) refusesUser(r *http.Request) (status int, why string) {
	user, password, given := r.BasicAuth()
	if !given || user == "" || password == "" {
		return http.StatusUnauthorized, "the name and the password of a user of the database admin are needed"
	}
	conn := h.opts.Commands.ConnectOwn(h.opts.NextID(), r.RemoteAddr, localAddress(r))
	defer h.opts.Commands.Disconnect(conn)
	if err := h.opts.Commands.LogIn(r.Context(), conn, "admin", user, password); err != nil {
		return http.StatusUnauthorized, err.Error()
	}
	if _, err := runOn(r.Context(), h.opts.Commands, conn, statusCommand()); err != nil { // which asks for what it takes
		return http.StatusForbidden, err.Error()
	}
	return 0, ""
}

// localAddress is where a request has come in, which what a user may be used from can depend on.
func localAddress(r *http.Request) string {
	if a, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok {
		return a.String()
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
