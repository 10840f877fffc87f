package config

import (
	"slices"
	"strconv"

	"github.com/ebbdb/ebb/internal/bson"
)

// The keys of whether clients have to log in. The second is the flag's that says no.
const (
	authorizationKey = "security.authorization"
	noAuthKey        = "security.noauth"
)

// securityOptions are those of who may do what.
func securityOptions() []option {
	return []option{
		{authorizationKey, "auth", "have clients log in, and let them do what they are allowed to",
			authorization},
		{noAuthKey, "noauth", "let everybody do everything, as by default",
			func(_ *Config, s setting) (bson.Value, error) { // a flag alone, which says what the key before says
				return bson.Value{}, errorf("Unrecognized option: %s", s.key)
			}},
		{"security.redactClientLogData", "redactClientLogData", "keep clients' data out of the log and of system.profile",
			boolOption(func(c *Config, v bool) {
				c.SetParameter = append(c.SetParameter, Parameter{"redactClientLogData", strconv.FormatBool(v)})
			})},
		{"security.keyFile", "keyFile", "`file` with the key by which members of the replica set know one another; has clients log in, too",
			stringOption(func(c *Config, v string) { c.Security.KeyFile = v })},
	}
}

func authorization(c *Config, s setting) (bson.Value, error) {
	switch s.text {
	case "enabled", "disabled":
		c.Security.Authorization = s.text
		return bson.String(s.text), nil
	}
	return bson.Value{}, errorf("Bad value for option \"%s\": %q; it is \"enabled\" or \"disabled\"", s.key, s.text)
}

// plainAuthorization has the two flags say what the file says.
func plainAuthorization(flags []setting) ([]setting, error) {
	asked, out := "", flags[:0]
	for _, s := range flags {
		if s.key != authorizationKey && s.key != noAuthKey {
			out = append(out, s)
			continue
		}
		if s.key == noAuthKey && s.text != "true" {
			continue
		}
		wants := "disabled"
		if s.key == authorizationKey && s.text == "true" {
			wants = "enabled"
		}
		if asked != "" && asked != wants {
			return nil, errorf("--auth and --noauth cannot be given together")
		}
		asked = wants
	}
	if asked != "" {
		out = append(out, setting{authorizationKey, asked})
	}
	return slices.Clip(out), nil
}

// Authorized says whether clients have to log in.
func (s *Security) Authorized() bool {
	return s.Authorization == "enabled" || s.Authorization == "" && (s.KeyFile != "" || s.ByX509())
}

// checkSecurity looks at what only makes sense together.
func (c *Config) checkSecurity() error {
	s := &c.Security
	if c.Replication.SetName != "" && s.Authorized() && s.KeyFile == "" && s.ClusterAuthMode != ClusterX509 {
		return errorf("security.keyFile is required when authorization is enabled with replica sets")
	}
	return c.checkLDAP()
}
