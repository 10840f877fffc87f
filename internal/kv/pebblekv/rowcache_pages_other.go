//go:build !linux

package pebblekv

func mayCollapse() bool { return false }

func collapse(uintptr) (known bool) { return false }
