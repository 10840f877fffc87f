//go:build unix

package main

import (
	"os"
	"syscall"
)

// rotateSignals begin a new log file.
func rotateSignals() []os.Signal { return []os.Signal{syscall.SIGUSR1} }
