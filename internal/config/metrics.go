package config

import (
	"net"
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
)

// Metrics is where the server tells Prometheus how it is doing.
type Metrics struct {
	// Port is 0 for nowhere.
	Port int
	// BindIP is IP addresses, host names or "*".
	BindIP []string
}

func metricsOptions() []option {
	return []option{
		{"net.metrics.port", "metricsPort", "port `number` of /metrics for Prometheus, and of /health/live and /health/ready; 0, the default, is none",
			intOption(0, maxPort, func(c *Config, v int) { c.Net.Metrics.Port = v })},
		{"net.metrics.bindIp", "metricsBindIp", "comma-separated `addresses` to tell them on, 127.0.0.1 by default",
			metricsBindIP},
	}
}

func metricsBindIP(c *Config, s setting) (bson.Value, error) {
	var hosts []string
	for host := range strings.SplitSeq(s.text, ",") {
		host = strings.TrimSpace(host)
		if host == "" || strings.ContainsAny(host, "/ ") || strings.Contains(host, ":") && net.ParseIP(host) == nil {
			return bson.Value{}, errorf("Error parsing option \"%s\": %q is not an address (the port is an option of its own)", s.key, host)
		}
		hosts = append(hosts, host)
	}
	if len(hosts) > maxMetricsAddresses {
		return bson.Value{}, errorf("Error parsing option \"%s\": it names more than %d addresses", s.key, maxMetricsAddresses)
	}
	c.Net.Metrics.BindIP = hosts
	return bson.String(s.text), nil
}

// maxMetricsAddresses bounds the addresses that figures are told on.
const maxMetricsAddresses = 16

// checkMetrics looks at what only makes sense together.
func (c *Config) checkMetrics(bound bool) error {
	m := &c.Net.Metrics
	switch {
	case m.Port == 0 && bound:
		return errorf("net.metrics.bindIp needs net.metrics.port")
	case m.Port != 0 && m.Port == c.Net.Port:
		return errorf("net.metrics.port and net.port are both %d", m.Port)
	}
	return nil
}
