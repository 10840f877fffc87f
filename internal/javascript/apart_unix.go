//go:build unix

package javascript

import "syscall"

// apart keeps signals that a terminal sends to the server's group of processes from its workers.
func apart() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
