package config

import (
	"net"
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
)

// Console is where browsers find the console.
type Console struct {
	// Port is 0 for no console.
	Port int
	// BindIP is IP addresses, host names or "*".
	BindIP []string
}

// consoleOptions are the rows of net.console.
func consoleOptions() []option {
	return []option{
		{"net.console.port", "consolePort", "port `number` of the console for browsers, 27018 by default where the server is on 27017, and none where it is not; 0 for none",
			intOption(0, maxPort, func(c *Config, v int) { c.Net.Console.Port = v })},
		{"net.console.bindIp", "consoleBindIp", "comma-separated `addresses` of the console, 127.0.0.1 by default; others need authorization and TLS",
			consoleBindIP},
	}
}

func consoleBindIP(c *Config, s setting) (bson.Value, error) {
	var hosts []string
	for host := range strings.SplitSeq(s.text, ",") {
		host = strings.TrimSpace(host)
		switch {
		case host == "":
			return bson.Value{}, errorf("Error parsing option \"%s\": %q has an empty address", s.key, s.text)
		case strings.ContainsAny(host, ":/") && net.ParseIP(host) == nil:
			return bson.Value{}, errorf("Error parsing option \"%s\": %q is not an address (the port is an option of its own)", s.key, host)
		}
		hosts = append(hosts, host)
	}
	c.Net.Console.BindIP = hosts
	return bson.String(s.text), nil
}

// checkConsole looks at who reaches the console, and gives it its port where nobody has: a server beside the one on the default port has
// no console unless it is told to, for the port next to it may be another server's.
func (c *Config) checkConsole(portGiven bool) error {
	o := &c.Net.Console
	if !portGiven && c.Net.Port == DefaultPort {
		o.Port = DefaultConsolePort
	}
	switch {
	case o.Port == 0:
		return nil
	case portGiven && o.Port == c.Net.Port:
		return errorf("net.console.port and net.port are both %d", o.Port)
	case !o.IsLocal() && (!c.Security.Authorized() || !c.Net.TLS.Enabled()):
		return errorf("net.console.bindIp: on other addresses than this machine's own the console needs security.authorization and net.tls")
	}
	return nil
}

// IsLocal says whether only this machine reaches the console.
func (c *Console) IsLocal() bool {
	for _, host := range c.BindIP {
		if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
			return false
		}
	}
	return true
}
