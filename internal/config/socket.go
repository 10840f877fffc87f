package config

import (
	"io/fs"
	"path/filepath"
	"strconv"

	"github.com/ebbdb/ebb/internal/bson"
)

// UnixSocket is the Unix domain socket of the server's port.
type UnixSocket struct {
	Enabled bool
	// Prefix is its folder.
	Prefix string
	Mode   fs.FileMode
}

// socketOptions are the rows of net.unixDomainSocket.
func socketOptions() []option {
	return []option{
		{"net.unixDomainSocket.enabled", negation + "nounixsocket", "do not listen on a Unix domain socket",
			boolOption(func(c *Config, v bool) { c.Net.UnixSocket.Enabled = v })},
		{"net.unixDomainSocket.pathPrefix", "unixSocketPrefix", "`folder` of the Unix domain socket, /tmp by default",
			stringOption(func(c *Config, v string) { c.Net.UnixSocket.Prefix = filepath.Clean(v) })},
		{"net.unixDomainSocket.filePermissions", "filePermissions", "`mode` of the Unix domain socket, 0700 by default",
			filePermissions},
	}
}

// filePermissions takes a number as C writes it: with a zero before it, it is octal.
func filePermissions(c *Config, s setting) (bson.Value, error) {
	v, err := strconv.ParseInt(s.text, 0, 32)
	if err != nil {
		return bson.Value{}, errorf("Error parsing option \"%s\" as int: %q is not a whole number", s.key, s.text)
	}
	if v < 0 || v > 0o777 {
		return bson.Value{}, errorf("Error parsing option \"%s\": %s is not between 0 and 0777", s.key, s.text)
	}
	c.Net.UnixSocket.Mode = fs.FileMode(v)
	return bson.Int32(int32(v)), nil
}
