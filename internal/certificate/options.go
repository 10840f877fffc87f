// Package certificate is what TLS goes by: it reads certificates, keys, authorities and lists of revoked certificates, keeps those that are
// in force, and says who a peer is by its certificate. It knows no sockets and no commands.
package certificate

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// Limits of what is read.
const (
	// maxFileBytes bounds a file of certificates, maxListBytes one of revoked certificates.
	maxFileBytes = 4 << 20
	maxListBytes = 64 << 20
	// maxCertificates bounds how many certificates a file has.
	maxCertificates = 10_000
)

// Options say which files there are, and what is asked of clients.
type Options struct {
	// KeyFile has the server's certificate, those of the authorities between it and the root, and its key, which KeyPassword decrypts.
	KeyFile, KeyPassword string
	// ClusterFile is the same for connections to other members; "" is KeyFile. It is read, since it must be right before it is needed.
	ClusterFile, ClusterPassword string
	// CAFile has the authorities whose certificates are believed; ClusterCAFile, where it is given, those that clients' are held against.
	CAFile, ClusterCAFile string
	// SystemCA believes the machine's authorities instead.
	SystemCA bool
	// CRLFile lists certificates that were revoked.
	CRLFile string
	// AllowNone lets clients come without a certificate, AllowInvalid with one that is no good, which then says nothing of who they are.
	AllowNone, AllowInvalid bool
	// AllowInvalidHosts does not hold the certificates of other members against their addresses.
	AllowInvalidHosts bool
	// MinVersion and MaxVersion are TLS's; 0 is 1.2 and 1.3.
	MinVersion, MaxVersion uint16
	// Members says which certificates are those of members.
	Members Members
}

// Check says what of the options does not go together, in mongod's words.
func (o *Options) Check() error {
	switch {
	case o.KeyFile == "":
		return errors.New("need tlsCertificateKeyFile or certificateSelector when TLS is enabled")
	case o.CRLFile != "" && o.CAFile == "":
		return errors.New("need tlsCAFile with tlsCRLFile")
	case o.CAFile == "" && !o.SystemCA:
		return errors.New("The use of TLS without specifying a chain of trust is no longer supported. " +
			"See https://jira.mongodb.org/browse/SERVER-72839 for details.")
	case o.CAFile != "" && o.SystemCA:
		return errors.New("The use of both a CA File and the System Certificate store is not supported.")
	}
	if a := o.Members.Attributes; a != "" {
		if _, err := readName(a); err != nil {
			return fmt.Errorf("Error parsing option \"net.tls.clusterAuthX509.attributes\": %w", err)
		}
	}
	return nil
}

// versions are the protocol versions to speak.
func (o *Options) versions() (least, most uint16) {
	least, most = o.MinVersion, o.MaxVersion
	if least == 0 {
		least = tls.VersionTLS12
	}
	if most == 0 {
		most = tls.VersionTLS13
	}
	return least, most
}

// files are those that there are, by what they are for.
func (o *Options) files() []string {
	var out []string
	for _, name := range []string{o.KeyFile, o.ClusterFile, o.CAFile, o.ClusterCAFile, o.CRLFile} {
		if name != "" {
			out = append(out, name)
		}
	}
	return out
}

// read is the contents of a file of limit bytes at most.
func read(name string, limit int64) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, plain(err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, plain(err)
	}
	if int64(len(b)) > limit {
		return nil, fmt.Errorf("it is larger than %d bytes", limit)
	}
	return b, nil
}

// plain is what went wrong without the name of the file, which the caller says.
func plain(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}

// VersionName is what MongoDB calls a version of the protocol.
func VersionName(version uint16) string {
	switch version {
	case tls.VersionTLS12:
		return "1.2"
	case tls.VersionTLS13:
		return "1.3"
	}
	return "unknown"
}
