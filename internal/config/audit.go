package config

import (
	"github.com/ebbdb/ebb/internal/audit"
	"github.com/ebbdb/ebb/internal/bson"
)

// auditOptions are those of the audit log.
func auditOptions() []option {
	return []option{
		{"auditLog.destination", "auditDestination", "`where` the audit log goes: file, syslog or console; without it there is none",
			wordOption(func(c *Config, v string) { c.Audit.Destination = v }, audit.ToFile, audit.ToSyslog, audit.ToConsole)},
		{"auditLog.format", "auditFormat", "`format` of the audit log's file, JSON or BSON",
			wordOption(func(c *Config, v string) { c.Audit.Format = v }, audit.JSON, audit.BSON)},
		{"auditLog.path", "auditPath", "`file` of the audit log",
			stringOption(func(c *Config, v string) { c.Audit.Path = v })},
		{"auditLog.filter", "auditFilter", "which events are written: a match `expression` over them, all by default",
			auditFilter},
		{"auditLog.schema", "auditSchema", "`schema` of the events, which is mongo",
			wordOption(func(*Config, string) {}, "mongo")},
		{"auditLog.stopOnFailure", "auditStopOnFailure", "end the server when the audit log cannot be written, as when the disk is full; without it that is logged and counted",
			boolOption(func(c *Config, v bool) { c.Audit.StopOnFailure = v })},
	}
}

func auditFilter(c *Config, s setting) (bson.Value, error) {
	doc, err := bson.ParseDoc(s.text)
	if err == nil {
		err = audit.CheckFilter(doc)
	}
	if err != nil {
		return bson.Value{}, errorf("Error parsing option \"%s\": %v", s.key, err)
	}
	c.Audit.Filter = doc
	return bson.String(s.text), nil
}

// checkAudit looks at what only makes sense together.
func (c *Config) checkAudit(has func(key string) bool) error {
	a := &c.Audit
	switch a.Destination {
	case audit.ToFile:
		if a.Format == "" {
			return errorf("auditFormat must be specified if auditDestination is to a file")
		}
		if a.Path == "" {
			return errorf("auditPath must be specified if auditDestination is to a file")
		}
	case "":
		for _, o := range auditOptions() {
			if has(o.key) {
				return errorf("auditDestination must be specified if %s is", o.key)
			}
		}
	default:
		if a.Format == audit.BSON || a.Path != "" {
			return errorf("auditFormat BSON and auditPath are for auditDestination file, not %s", a.Destination)
		}
	}
	a.Reopen = c.SystemLog.Reopen
	return nil
}
