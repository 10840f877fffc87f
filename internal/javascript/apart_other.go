//go:build !unix

package javascript

import "syscall"

func apart() *syscall.SysProcAttr { return nil }
