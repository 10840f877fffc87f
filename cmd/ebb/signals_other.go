//go:build !unix

package main

import "os"

// rotateSignals are none where the system has none.
func rotateSignals() []os.Signal { return nil }
