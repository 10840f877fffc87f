package config

import (
	"net"
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
)

// maxPDs bounds how many placement drivers may be named.
const maxPDs = 64

func tikvOptions() []option {
	return []option{
		{"storage.tikv.pd", "tikvPD", "comma-separated `addresses` (host:port) of the placement drivers of the TiKV cluster that has the data, for --storageEngine tikv",
			pdAddresses},
		{"storage.tikv.keyspace", "tikvKeyspace", "`name` of the place in the TiKV cluster where the data is, \"default\" by default; of the servers on it one at a time works, and the others hand clients on to it",
			keyspace},
		{"storage.tikv.tls.CAFile", "tikvTLSCAFile", "PEM `file` with the certificates by which the TiKV cluster is known; with it the cluster is spoken to over TLS",
			stringOption(func(c *Config, v string) { c.Storage.TiKV.CAFile = v })},
		{"storage.tikv.tls.certificateFile", "tikvTLSCertificateFile", "PEM `file` with the certificate that is shown to the TiKV cluster",
			stringOption(func(c *Config, v string) { c.Storage.TiKV.CertificateFile = v })},
		{"storage.tikv.tls.keyFile", "tikvTLSKeyFile", "PEM `file` with the key of that certificate",
			stringOption(func(c *Config, v string) { c.Storage.TiKV.KeyFile = v })},
	}
}

func pdAddresses(c *Config, s setting) (bson.Value, error) {
	addresses := strings.Split(s.text, ",")
	if len(addresses) > maxPDs {
		return bson.Value{}, errorf("Option \"%s\" names more than %d addresses", s.key, maxPDs)
	}
	for _, address := range addresses {
		if host, port, err := net.SplitHostPort(address); err != nil || host == "" || port == "" {
			return bson.Value{}, errorf("Error parsing option \"%s\": %q is not host:port", s.key, address)
		}
	}
	c.Storage.TiKV.PD = addresses
	return bson.String(s.text), nil
}

func keyspace(c *Config, s setting) (bson.Value, error) {
	letters := func(r rune) bool {
		return r == '-' || r == '_' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
	}
	if s.text == "" || len(s.text) > 64 || strings.TrimFunc(s.text, letters) != "" {
		return bson.Value{}, errorf("Error parsing option \"%s\": a keyspace's name is 1 to 64 letters, digits, - and _, not %q", s.key, s.text)
	}
	c.Storage.TiKV.Keyspace = s.text
	return bson.String(s.text), nil
}
