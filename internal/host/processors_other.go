//go:build !linux

package host

import "time"

func processUsed() time.Duration { return 0 }

func machineIdle() time.Duration { return -1 }
