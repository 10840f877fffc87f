// Package godriver knows what an application has to know of the Go driver.
package godriver

import "strings"

// Unsent says whether the driver had chosen the primary when that ended, and found no connection or could not make one. Such an error is meant to be
// tried again, but the driver (2.9.3) wraps it and does not know it again, so it tells the application: nothing was sent.
func Unsent(err error) bool {
	if err == nil {
		return false
	}
	text := err.Error()
	return strings.Contains(text, "was cleared because another operation failed") || strings.Contains(text, "occurred during connection handshake: failed to connect")
}
