package ebb

import (
	"crypto/fips140"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"sync/atomic"

	"github.com/ebbdb/ebb/internal/certificate"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/config"
	"github.com/ebbdb/ebb/internal/server"
)

// TLS is how a server speaks it: versions 1.2 and 1.3. The files are read when it is opened, when they change, and by the command
// rotateCertificates.
type TLS struct {
	// Mode says which connections are over TLS: AllowTLS and PreferTLS take plain ones as well, RequireTLS does not.
	Mode string
	// CertificateKeyFile has the server's certificate, those of the authorities between it and the root, and its key, in PEM; the password
	// decrypts the key.
	CertificateKeyFile, CertificateKeyFilePassword string
	// ClusterFile is the same for connections to other members; "" is CertificateKeyFile.
	ClusterFile, ClusterPassword string
	// CAFile has the authorities that are believed. Certificates of clients are held against ClusterCAFile where that is given.
	CAFile, ClusterCAFile string
	// UseSystemCA believes the machine's authorities instead of CAFile's.
	UseSystemCA bool
	// CRLFile lists certificates that were revoked.
	CRLFile string
	// AllowConnectionsWithoutCertificates lets clients come without one, AllowInvalidCertificates with one that is not valid, of which
	// nothing is believed.
	AllowConnectionsWithoutCertificates, AllowInvalidCertificates bool
	// AllowInvalidHostnames does not hold the certificates of other members against their addresses.
	AllowInvalidHostnames bool
	// MinVersion and MaxVersion are those of crypto/tls; 0 is 1.2 and 1.3. LogVersions are those whose use is logged.
	MinVersion, MaxVersion uint16
	LogVersions            []uint16
	// FIPSMode refuses to start without the Go Cryptographic Module in FIPS 140-3 mode.
	FIPSMode bool
	// ClusterAuthX509Attributes (such as "O=Ebb,OU=members") or ClusterAuthX509ExtensionValue are what members' certificates have; without
	// either, the O, OU and DC of the server's own.
	ClusterAuthX509Attributes, ClusterAuthX509ExtensionValue string
}

// The modes of TLS, for TLS.Mode.
const (
	AllowTLS   = config.TLSAllow
	PreferTLS  = config.TLSPrefer
	RequireTLS = config.TLSRequire
)

// UnixSocket has the server listen on a Unix domain socket as well, whose name tells its port: mongodb-27017.sock.
type UnixSocket struct {
	// PathPrefix is its folder; "" is /tmp.
	PathPrefix string
	// Permissions are its mode; 0 is 0700.
	Permissions fs.FileMode
}

var errFIPS = errors.New("net.tls.FIPSMode: this process does not use the Go Cryptographic Module in FIPS 140-3 mode; start it with GODEBUG=fips140=on")

// transport is what the network goes by.
type transport struct {
	certificates *certificate.Store // nil: there is no TLS
	mode         atomic.Int32
	logged       []uint16
	clusterAuth  *command.ClusterAuth
	// params is nil until there are parameters.
	params *command.TransportParameters
}

// clusterAuth is how members show at first that they are such.
func (o *Options) clusterAuth() command.ClusterAuthMode {
	switch {
	case o.ClusterX509 && o.ClusterSendsKey:
		return command.ClusterAuthSendKeyFile
	case o.ClusterX509 && (o.ClusterTakesKey || o.KeyFile != ""):
		return command.ClusterAuthSendX509
	case o.ClusterX509:
		return command.ClusterAuthX509
	case o.KeyFile != "":
		return command.ClusterAuthKeyFile
	}
	return command.ClusterAuthNone
}

// openTransport reads the certificates.
func openTransport(o *TLS, members command.ClusterAuthMode, log *slog.Logger) (*transport, error) {
	t := &transport{clusterAuth: command.NewClusterAuth(members)}
	if o == nil {
		return t, nil
	}
	modes := map[string]server.Mode{AllowTLS: server.AllowTLS, PreferTLS: server.PreferTLS, RequireTLS: server.RequireTLS}
	mode, ok := modes[o.Mode]
	if !ok {
		return nil, fmt.Errorf("unsupported value for tlsMode %s", o.Mode)
	}
	if o.FIPSMode && !fips140.Enabled() {
		return nil, errFIPS
	}
	t.mode.Store(int32(mode))
	t.logged = o.LogVersions
	var err error
	t.certificates, err = certificate.Open(certificate.Options{
		KeyFile: o.CertificateKeyFile, KeyPassword: o.CertificateKeyFilePassword, ClusterFile: o.ClusterFile, ClusterPassword: o.ClusterPassword,
		CAFile: o.CAFile, ClusterCAFile: o.ClusterCAFile, SystemCA: o.UseSystemCA, CRLFile: o.CRLFile,
		AllowNone: o.AllowConnectionsWithoutCertificates, AllowInvalid: o.AllowInvalidCertificates, AllowInvalidHosts: o.AllowInvalidHostnames,
		MinVersion: o.MinVersion, MaxVersion: o.MaxVersion,
		Members: certificate.Members{Attributes: o.ClusterAuthX509Attributes, ExtensionValue: o.ClusterAuthX509ExtensionValue},
	}, clock.Wall(), log) // certificates end in real time
	return t, err
}

// tls is what the listeners are told.
func (t *transport) tls() *server.TLS {
	if t.certificates == nil {
		return nil
	}
	return &server.TLS{
		Certificates: t.certificates, Mode: &t.mode, Logged: t.logged,
		NoPlainLog: func() bool { return t.params.NoPlainLog.Get() },
		NoBareLog:  func() bool { return t.params.NoBareLog.Get() },
		WarnDays:   func() int64 { return t.params.WarnDays.Get() },
	}
}

// listensOn shares the addresses out: those that are paths are Unix domain sockets.
func (o *Options) listensOn() (addresses []string, sockets []server.Socket) {
	mode := fs.FileMode(0o700)
	if s := o.UnixSocket; s != nil {
		prefix := "/tmp"
		if s.PathPrefix != "" {
			prefix = s.PathPrefix
		}
		if s.Permissions != 0 {
			mode = s.Permissions
		}
		sockets = append(sockets, server.Socket{Path: filepath.Clean(prefix) + "/", Mode: mode})
	}
	for _, a := range o.Addresses {
		if filepath.IsAbs(a) {
			sockets = append(sockets, server.Socket{Path: a, Mode: mode})
		} else {
			addresses = append(addresses, a)
		}
	}
	return addresses, sockets
}
