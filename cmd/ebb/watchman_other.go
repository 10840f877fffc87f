//go:build !linux

package main

// slowWatchman does nothing here.
func slowWatchman() {}
