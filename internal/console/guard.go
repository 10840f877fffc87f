package console

import (
	"mime"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
)

// The headers by which the console's own page is known. No foreign page can set them without asking, and no leave is given.
const (
	markHeader  = "X-Ebb-Console"
	tokenHeader = "X-Ebb-Token"
)

// nowHeader is the database's time, in milliseconds, with the reply of a command.
const nowHeader = "X-Ebb-Now"

// ownNames are the names by which browsers may call the server: this machine's, and those that it was told to listen on.
func ownNames(addresses []string) []string {
	names := []string{"localhost"}
	if name, err := os.Hostname(); err == nil && name != "" {
		names = append(names, strings.ToLower(name))
	}
	for _, a := range addresses {
		if a != "*" && net.ParseIP(a) == nil {
			names = append(names, strings.ToLower(a))
		}
	}
	return names
}

// isOwnHost says whether a request's Host is this server. An address is: only names can be made to lead elsewhere. The port is not
// looked at, for who forwards one to here has another.
func (s *Server) isOwnHost(hostPort string) bool {
	host := hostPort
	if h, _, err := net.SplitHostPort(hostPort); err == nil {
		host = h
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	return net.ParseIP(host) != nil || slices.Contains(s.names, strings.ToLower(host))
}

// origin is the console's own, as a browser says it that has sent r.
func (s *Server) origin(r *http.Request) string {
	if s.opts.Certificates != nil {
		return "https://" + r.Host
	}
	return "http://" + r.Host
}

// comesFromOwnPage is "" for a request of the interface that the console's page has sent, and otherwise why it is not.
func (s *Server) comesFromOwnPage(r *http.Request) (why string) {
	site := r.Header.Get("Sec-Fetch-Site")
	switch {
	case r.Header.Get(markHeader) == "":
		return "the header " + markHeader + " is missing"
	case site != "" && site != "same-origin":
		return "it comes from another site"
	case r.Method == http.MethodGet:
		return ""
	case r.Header.Get("Origin") != s.origin(r):
		return "its Origin is not this console"
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return "its Content-Type is not application/json"
	}
	return ""
}

// protect sets what a browser has to keep to with whatever it gets from here. nonce is that of the page's own styles.
func protect(h http.Header, nonce string) {
	style := "style-src 'self'"
	if nonce != "" {
		style += " 'nonce-" + nonce + "'"
	}
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; "+style+
		"; img-src 'self' data:; font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"+
		"; require-trusted-types-for 'script'; trusted-types 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), microphone=(), geolocation=()")
}
