package config

import (
	"slices"
	"strings"
)

// deprecatedOption is a key and its flag from the time when TLS was called SSL, which mongod takes to this day. What comes of it is shown
// under the key of now.
type deprecatedOption struct {
	key, flag, now string
	// values are what may be said, and what it is now; nil where that is the same.
	values map[string]string
}

func deprecatedOptions() []deprecatedOption {
	modes := map[string]string{"disabled": TLSDisabled, "allowSSL": TLSAllow, "preferSSL": TLSPrefer, "requireSSL": TLSRequire}
	switches := map[string]string{"false": TLSDisabled, "true": TLSRequire}
	out := []deprecatedOption{
		{"net.ssl.mode", "sslMode", "net.tls.mode", modes},
		{"net.ssl.sslOnNormalPorts", "sslOnNormalPorts", "net.tls.mode", switches},
		{"net.tls.tlsOnNormalPorts", "tlsOnNormalPorts", "net.tls.mode", switches},
		{"net.ssl.PEMKeyFile", "sslPEMKeyFile", "net.tls.certificateKeyFile", nil},
		{"net.ssl.PEMKeyPassword", "sslPEMKeyPassword", "net.tls.certificateKeyFilePassword", nil},
		{"net.ssl.weakCertificateValidation", "sslWeakCertificateValidation", "net.tls.allowConnectionsWithoutCertificates", nil},
		{"net.tls.weakCertificateValidation", "tlsWeakCertificateValidation", "net.tls.allowConnectionsWithoutCertificates", nil},
	}
	for _, name := range []string{"clusterFile", "clusterPassword", "CAFile", "clusterCAFile", "CRLFile", "disabledProtocols",
		"allowConnectionsWithoutCertificates", "allowInvalidCertificates", "allowInvalidHostnames", "FIPSMode"} {
		out = append(out, deprecatedOption{"net.ssl." + name, "ssl" + strings.ToUpper(name[:1]) + name[1:], "net.tls." + name, nil})
	}
	return out
}

// isSwitch says whether nothing follows the flag.
func (d *deprecatedOption) isSwitch() bool {
	return strings.HasSuffix(d.key, "OnNormalPorts") || slices.ContainsFunc(tlsOptions(), func(o option) bool { return o.key == d.now && o.isSwitch() })
}

// modernize has settings under the keys of now.
func modernize(given []setting) ([]setting, error) {
	for i, s := range given {
		at := slices.IndexFunc(deprecatedOptions(), func(d deprecatedOption) bool { return d.key == s.key })
		if at < 0 {
			continue
		}
		d := deprecatedOptions()[at]
		if other := slices.IndexFunc(given, func(o setting) bool { return o.key == d.now }); other >= 0 {
			return nil, errorf("%s is not allowed when %s is specified", d.now, d.key)
		}
		value := s.text
		if d.values != nil {
			if value = d.values[s.text]; value == "" {
				return nil, errorf("unsupported value for %s %s", d.flag, s.text)
			}
		}
		given[i] = setting{d.now, value}
	}
	return given, nil
}
