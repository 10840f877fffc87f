package config

import (
	"crypto/tls"
	"slices"
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/certificate"
)

// The modes of TLS.
const (
	TLSDisabled = "disabled"
	TLSAllow    = "allowTLS"
	TLSPrefer   = "preferTLS"
	TLSRequire  = "requireTLS"
)

// TLS is how the server speaks it.
type TLS struct {
	Mode string
	// Certificates are the files, and what is asked of clients.
	Certificates certificate.Options
	// LogVersions are the versions of the protocol whose use is logged.
	LogVersions []uint16
	// FIPS lets the server start only where its cryptography is that which was validated.
	FIPS bool
}

// The ways in which members show that they are such.
const (
	ClusterKeyFile     = "keyFile"
	ClusterSendKeyFile = "sendKeyFile"
	ClusterSendX509    = "sendX509"
	ClusterX509        = "x509"
)

// redacted is what getCmdLineOpts shows of a password.
const redacted = "<password>"

// tlsOptions are the rows of net.tls, and of how members know one another by it.
func tlsOptions() []option {
	file := func(at func(*certificate.Options) *string) func(*Config, setting) (bson.Value, error) {
		return stringOption(func(c *Config, v string) { *at(&c.Net.TLS.Certificates) = v })
	}
	return []option{
		{"net.tls.mode", "tlsMode", "which connections are over TLS, a `mode`: disabled (default), allowTLS, preferTLS or requireTLS",
			tlsMode},
		{"net.tls.certificateKeyFile", "tlsCertificateKeyFile", "`file` of the server's certificate and its key, in PEM",
			file(func(o *certificate.Options) *string { return &o.KeyFile })},
		{"net.tls.certificateKeyFilePassword", "tlsCertificateKeyFilePassword", "`password` of that key",
			password(func(c *Config, v string) { c.Net.TLS.Certificates.KeyPassword = v })},
		{"net.tls.clusterFile", "tlsClusterFile", "`file` of the certificate and key for connections to other members; that of the server by default",
			file(func(o *certificate.Options) *string { return &o.ClusterFile })},
		{"net.tls.clusterPassword", "tlsClusterPassword", "`password` of that key",
			password(func(c *Config, v string) { c.Net.TLS.Certificates.ClusterPassword = v })},
		{"net.tls.CAFile", "tlsCAFile", "`file` of the certificate authorities that are believed",
			file(func(o *certificate.Options) *string { return &o.CAFile })},
		{"net.tls.clusterCAFile", "tlsClusterCAFile", "`file` of the authorities that certificates of clients are held against; CAFile by default",
			file(func(o *certificate.Options) *string { return &o.ClusterCAFile })},
		{"net.tls.CRLFile", "tlsCRLFile", "`file` of lists of revoked certificates",
			file(func(o *certificate.Options) *string { return &o.CRLFile })},
		{"net.tls.disabledProtocols", "tlsDisabledProtocols", "comma-separated `versions` of TLS not to speak: TLS1_2, TLS1_3; those before are never spoken",
			disabledProtocols},
		{"net.tls.logVersions", "tlsLogVersions", "comma-separated `versions` of TLS whose use is logged: TLS1_2, TLS1_3",
			logVersions},
		{"net.tls.allowConnectionsWithoutCertificates", "tlsAllowConnectionsWithoutCertificates", "let clients connect that have no certificate",
			boolOption(func(c *Config, v bool) { c.Net.TLS.Certificates.AllowNone = v })},
		{"net.tls.allowInvalidCertificates", "tlsAllowInvalidCertificates", "let clients connect whose certificate is not valid, and believe nothing that it says",
			boolOption(func(c *Config, v bool) { c.Net.TLS.Certificates.AllowInvalid = v })},
		{"net.tls.allowInvalidHostnames", "tlsAllowInvalidHostnames", "do not hold the certificates of other members against their addresses",
			boolOption(func(c *Config, v bool) { c.Net.TLS.Certificates.AllowInvalidHosts = v })},
		{"net.tls.FIPSMode", "tlsFIPSMode", "start only with cryptography that was validated by FIPS 140-3",
			boolOption(func(c *Config, v bool) { c.Net.TLS.FIPS = v })},
		{"net.tls.clusterAuthX509.attributes", "tlsClusterAuthX509Attributes", "`attributes` that the names of members' certificates have, such as O=Ebb,OU=members",
			stringOption(func(c *Config, v string) { c.Net.TLS.Certificates.Members.Attributes = v })},
		{"net.tls.clusterAuthX509.extensionValue", "tlsClusterAuthX509ExtensionValue", "`value` that members' certificates have in the extension 1.3.6.1.4.1.34601.2.1.2",
			stringOption(func(c *Config, v string) { c.Net.TLS.Certificates.Members.ExtensionValue = v })},
		{"security.clusterAuthMode", "clusterAuthMode", "how members show that they are such, a `mode`: keyFile (default), sendKeyFile, sendX509 or x509",
			clusterAuthMode},
	}
}

func tlsMode(c *Config, s setting) (bson.Value, error) {
	switch s.text {
	case TLSDisabled, TLSAllow, TLSPrefer, TLSRequire:
	default:
		return bson.Value{}, errorf("unsupported value for tlsMode %s", s.text)
	}
	c.Net.TLS.Mode = s.text
	return bson.String(s.text), nil
}

func clusterAuthMode(c *Config, s setting) (bson.Value, error) {
	switch s.text {
	case ClusterKeyFile, ClusterSendKeyFile, ClusterSendX509, ClusterX509:
	default:
		return bson.Value{}, errorf("unsupported value for clusterAuthMode %s", s.text)
	}
	c.Security.ClusterAuthMode = s.text
	return bson.String(s.text), nil
}

// password takes what is not to be shown.
func password(set func(*Config, string)) func(*Config, setting) (bson.Value, error) {
	return func(c *Config, s setting) (bson.Value, error) {
		set(c, s.text)
		return bson.String(redacted), nil
	}
}

// protocols reads a list of versions; 0 is one that is never spoken.
func protocols(s setting, unknown string) ([]uint16, error) {
	versions := map[string]uint16{"TLS1_0": 0, "TLS1_1": 0, "TLS1_2": tls.VersionTLS12, "TLS1_3": tls.VersionTLS13}
	var out []uint16
	for name := range strings.SplitSeq(s.text, ",") {
		v, ok := versions[name]
		if !ok {
			return nil, errorf("Unrecognized %s '%s'", unknown, name)
		}
		if v != 0 {
			out = append(out, v)
		}
	}
	return out, nil
}

func disabledProtocols(c *Config, s setting) (bson.Value, error) {
	list := s
	if list.text == "none" {
		return bson.String(s.text), nil
	}
	names := strings.Split(s.text, ",")
	for i := range names {
		names[i] = strings.TrimPrefix(names[i], "no") // as old command lines have it
	}
	list.text = strings.Join(names, ",")
	off, err := protocols(list, "disabledProtocols")
	if err != nil {
		return bson.Value{}, err
	}
	o := &c.Net.TLS.Certificates
	switch no12, no13 := slices.Contains(off, tls.VersionTLS12), slices.Contains(off, tls.VersionTLS13); {
	case no12 && no13:
		return bson.Value{}, errorf("net.tls.disabledProtocols leaves none: only TLS 1.2 and TLS 1.3 are spoken")
	case no12:
		o.MinVersion = tls.VersionTLS13
	case no13:
		o.MaxVersion = tls.VersionTLS12
	}
	return bson.String(s.text), nil
}

func logVersions(c *Config, s setting) (_ bson.Value, err error) {
	c.Net.TLS.LogVersions, err = protocols(s, "tlsLogVersions")
	return bson.String(s.text), err
}

// Enabled says whether the server speaks TLS.
func (t *TLS) Enabled() bool { return t.Mode != "" && t.Mode != TLSDisabled }

// ByX509 says whether members may show by certificates that they are such.
func (s *Security) ByX509() bool {
	return s.ClusterAuthMode != "" && s.ClusterAuthMode != ClusterKeyFile
}

// MemberKeyFile is the file with the key by which members may show that they are such, "" where nothing but certificates does.
func (s *Security) MemberKeyFile() string {
	if s.ClusterAuthMode == ClusterX509 {
		return ""
	}
	return s.KeyFile
}

// checkTLS looks at what only makes sense together.
func (c *Config) checkTLS() error {
	t := &c.Net.TLS
	o := &t.Certificates
	byX509 := c.Security.ByX509()
	if !t.Enabled() {
		given := o.KeyFile + o.KeyPassword + o.ClusterFile + o.ClusterPassword + o.CAFile + o.CRLFile
		switch {
		case given != "", o.MinVersion != 0, o.MaxVersion != 0, o.AllowNone:
			return errorf("need to enable TLS via the sslMode/tlsMode flag when using TLS configuration parameters")
		case byX509:
			return errorf("need to enable TLS via the tlsMode flag")
		}
		return nil
	}
	o.SystemCA = c.parameter("tlsUseSystemCA") == "true"
	switch {
	case o.KeyFile != "" && o.CAFile == "" && byX509:
		return errorf("No TLS certificate validation can be performed since no CA file has been provided; please specify an tlsCAFile parameter")
	case t.Mode == TLSAllow && (c.Security.ClusterAuthMode == ClusterSendX509 || c.Security.ClusterAuthMode == ClusterX509):
		return errorf("cannot have x.509 cluster authentication in allowTLS mode")
	case o.Members != (certificate.Members{}) && !byX509:
		return errorf("Cannot set clusterAuthX509.attributes when clusterAuthMode does not allow X.509")
	}
	if err := o.Check(); err != nil {
		return errorf("%v", err)
	}
	return nil
}

// parameter is what was given for a parameter, "" for nothing.
func (c *Config) parameter(name string) (value string) {
	for _, p := range c.SetParameter {
		if p.Name == name {
			value = p.Value
		}
	}
	return value
}

// withoutPasswords is a command line as it may be shown.
func withoutPasswords(argv []string) []string {
	out := slices.Clone(argv)
	for i, a := range out {
		name, _, joined := strings.Cut(a, "=")
		switch strings.TrimLeft(name, "-") {
		case "tlsCertificateKeyFilePassword", "tlsClusterPassword", "ldapQueryPassword", "sslPEMKeyPassword", "sslClusterPassword":
			if joined {
				out[i] = name + "=" + redacted
			} else if i+1 < len(out) {
				out[i+1] = redacted
			}
		}
	}
	return out
}
