//go:build linux || darwin

package command

import "syscall"

// diskSpace is how full the disk is that path is on; where there is no path, the one that the process runs on.
func diskSpace(path string) (used, whole int64, ok bool) {
	if path == "" {
		path = "."
	}
	var st syscall.Statfs_t
	if syscall.Statfs(path, &st) != nil {
		return 0, 0, false
	}
	block := int64(st.Bsize)
	return (int64(st.Blocks) - int64(st.Bfree)) * block, int64(st.Blocks) * block, true
}
