//go:build !unix

package audit

import "errors"

func openSyslog() (sink, error) { return nil, errors.New("this system has no syslog") }
