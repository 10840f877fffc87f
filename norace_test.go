//go:build !race

package ebb

const raceEnabled = false
