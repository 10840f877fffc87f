package config

import (
	"slices"
	"strings"
	"time"

	"github.com/ebbdb/ebb/internal/auth/ldap"
	"github.com/ebbdb/ebb/internal/bson"
)

// Limits of how long a login by a directory may take, in milliseconds.
const (
	ldapTimeout    = 10_000
	maxLDAPTimeout = 600_000
	maxLDAPServers = 16
)

// ldapOptions are the rows of security.ldap: the directory that knows users' passwords.
func ldapOptions() []option {
	text := func(at func(*ldap.Options) *string) func(*Config, setting) (bson.Value, error) {
		return stringOption(func(c *Config, v string) { *at(&c.Security.LDAP) = v })
	}
	return []option{
		{"security.ldap.servers", "ldapServers", "comma-separated `addresses` of the directory that knows the passwords of users of $external",
			ldapServers},
		{"security.ldap.transportSecurity", "ldapTransportSecurity", "how the directory is talked to, a `mode`: tls (default) or none",
			wordOption(func(c *Config, v string) { c.Security.LDAP.Plain = v == "none" }, "tls", "none")},
		{"security.ldap.timeoutMS", "ldapTimeoutMS", "`milliseconds` that a login by the directory may take, 10000 by default",
			intOption(1, maxLDAPTimeout, func(c *Config, v int) { c.Security.LDAP.Timeout = time.Duration(v) * time.Millisecond })},
		{"security.ldap.bind.method", "ldapBindMethod", "how the directory is told who asks, a `method`: simple",
			wordOption(func(*Config, string) {}, "simple")},
		{"security.ldap.bind.queryUser", "ldapQueryUser", "`name` of who asks the directory",
			text(func(o *ldap.Options) *string { return &o.QueryUser })},
		{"security.ldap.bind.queryPassword", "ldapQueryPassword", "`password` of who asks the directory",
			password(func(c *Config, v string) { c.Security.LDAP.QueryPassword = v })},
		{"security.ldap.userToDNMapping", "ldapUserToDNMapping", "`rules` in JSON that make of what users are called what the directory calls them",
			text(func(o *ldap.Options) *string { return &o.Mapping })},
		{"security.ldap.authz.queryTemplate", "ldapAuthzQueryTemplate", "`query` (RFC 4516, without a server) for the roles of {USER}; without it users are stored in $external",
			text(func(o *ldap.Options) *string { return &o.QueryTemplate })},
	}
}

func ldapServers(c *Config, s setting) (bson.Value, error) {
	names := strings.Split(s.text, ",")
	if slices.Contains(names, "") || len(names) > maxLDAPServers {
		return bson.Value{}, errorf("Bad value for option \"%s\": it is 1 to %d addresses with commas between them", s.key, maxLDAPServers)
	}
	c.Security.LDAP.Servers = names
	return bson.String(s.text), nil
}

// checkLDAP looks at what the directory is asked.
func (c *Config) checkLDAP() error {
	o := &c.Security.LDAP
	if o.Servers == nil {
		if o.QueryTemplate != "" {
			return errorf("security.ldap.authz.queryTemplate needs security.ldap.servers")
		}
		return nil
	}
	if _, err := ldap.New(*o); err != nil {
		return errorf("%v", err)
	}
	return nil
}
