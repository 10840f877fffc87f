package replset

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// Horizon is the address that a member has for the clients of one network, such as those outside of the one in which members reach one another.
// Which network a client is of tells the name by which it asks for the server in its TLS handshake.
type Horizon struct{ Name, Host string }

// defaultHorizon is MongoDB's name for where members have the address that they are members by.
const defaultHorizon = "__default"

// CheckHorizons says what is wrong with a member's horizons by themselves, in MongoDB's words; nil when nothing is. Their addresses are good, and they
// are in the order of their names.
func (m *Member) CheckHorizons() error {
	hosts := []string{hostName(m.Host)}
	for i, h := range m.Horizons {
		switch {
		case h.Name == defaultHorizon:
			return fmt.Errorf("Horizon name \"%s\" is reserved for internal mongodb usage", h.Name)
		case h.Name == "":
			return fmt.Errorf("Horizons cannot have empty names")
		case i > 0 && m.Horizons[i-1].Name == h.Name:
			return fmt.Errorf("Duplicate horizon name found \"%s\".", h.Name)
		}
		hosts = append(hosts, hostName(h.Host))
	}
	slices.Sort(hosts) // the name alone tells which horizon is meant, whatever the port is
	for i, host := range hosts[1:] {
		if hosts[i] == host {
			return fmt.Errorf("Duplicate horizon member found \"%s\".", host)
		}
	}
	return nil
}

// checkHorizons looks at what the horizons of all members have to agree about, and what they have to be different in.
func (c *Config) checkHorizons() error {
	partial, hosts := map[string]bool{}, map[string]int{}
	for i := range c.Members {
		m := &c.Members[i]
		for _, h := range m.Horizons {
			if isRange(hostName(h.Host)) {
				return fmt.Errorf("Found split horizon configuration using IP address, which is disallowed: members.%d.horizons contains entry {\"%s\": \"%s\"}", i, h.Name, h.Host)
			}
			hosts[h.Host]++
		}
		hosts[m.Host]++
		differences(c.Members[0].Horizons, m.Horizons, partial)
	}
	if len(partial) > 0 {
		return fmt.Errorf("Saw a replica set member with a different horizon mapping than the others.  The following horizons were not universally present: %s",
			strings.Join(sorted(partial, strings.Compare), ", "))
	}
	for host, n := range hosts {
		if n == 1 {
			delete(hosts, host)
		}
	}
	if len(hosts) > 0 {
		return fmt.Errorf("The following hostnames are not unique across all horizons and host specifications in the replica set: %s", strings.Join(sorted(hosts, compareHosts), ", "))
	}
	return nil
}

// differences notes the names that only one of two members has. Each has them in order.
func differences(a, b []Horizon, only map[string]bool) {
	for _, pair := range [...][2][]Horizon{{a, b}, {b, a}} {
		for _, h := range pair[0] {
			if _, both := slices.BinarySearchFunc(pair[1], h.Name, func(other Horizon, name string) int { return strings.Compare(other.Name, name) }); !both {
				only[h.Name] = true
			}
		}
	}
}

func sorted[V any](set map[string]V, order func(a, b string) int) []string {
	keys := make([]string, 0, len(set))
	for k := range set {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, order)
	return keys
}

// compareHosts orders addresses by name, then by port.
func compareHosts(a, b string) int {
	return cmp.Or(strings.Compare(hostName(a), hostName(b)), cmp.Compare(hostPort(a), hostPort(b)))
}

// hostName is an address without its port, and without the brackets of one of IPv6.
func hostName(host string) string {
	if i := strings.LastIndexByte(host, ':'); i > strings.LastIndexByte(host, ']') {
		host = host[:i]
	}
	return strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
}

func hostPort(host string) int {
	n, _ := strconv.Atoi(host[strings.LastIndexByte(host, ':')+1:])
	return n
}

// isRange says whether a name is an address or a range of them, by which nobody asks in a handshake.
func isRange(name string) bool {
	if _, err := netip.ParseAddr(name); err == nil {
		return true
	}
	_, err := netip.ParsePrefix(name)
	return err == nil
}

// HorizonOf is the name of the horizon in which a client is that has asked a member by a name in its handshake; "" is where members have the address
// that they are members by, and where whoever is that has asked by no name or by another one.
func (m *Member) HorizonOf(asked string) string {
	for _, h := range m.Horizons {
		if asked != "" && hostName(h.Host) == asked {
			return h.Name
		}
	}
	return ""
}

// HostIn is a member's address in a horizon.
func (m *Member) HostIn(horizon string) string {
	for _, h := range m.Horizons {
		if h.Name == horizon {
			return h.Host
		}
	}
	return m.Host
}

// HostIn is the address in a horizon of the member that has another one by itself; that one where nobody has it.
func (c *Config) HostIn(horizon, host string) string {
	for i := range c.Members {
		if c.Members[i].Host == host {
			return c.Members[i].HostIn(horizon)
		}
	}
	return host
}
