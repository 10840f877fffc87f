//go:build unix

package main

import (
	"os"
	"os/exec"
	"syscall"
	"time"
)

func ownCPU() time.Duration {
	var r syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &r) // fails for no argument there is
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// setApart keeps an interrupt at the terminal for this program alone.
func setApart(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// blockBytes is the unit of st_blocks.
const blockBytes = 512

func occupied(info os.FileInfo) int64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return st.Blocks * blockBytes
	}
	return info.Size()
}
