//go:build !linux && !darwin

package command

// diskSpace is not known here.
func diskSpace(string) (used, whole int64, ok bool) { return 0, 0, false }
