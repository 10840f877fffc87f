package pebblekv

import (
	"bytes"
	"os"

	"golang.org/x/sys/unix"
)

// mayCollapse says whether the machine's administrator lets programs ask for huge pages.
func mayCollapse() bool {
	setting, err := os.ReadFile("/sys/kernel/mm/transparent_hugepage/enabled")
	return err == nil && !bytes.Contains(setting, []byte("[never]"))
}

// collapse makes a huge page of what is there. That there is none to be had just now does not mean that there will be none.
func collapse(page uintptr) (known bool) {
	_, _, err := unix.Syscall(unix.SYS_MADVISE, page, hugePage, unix.MADV_COLLAPSE)
	return err != unix.EINVAL
}
