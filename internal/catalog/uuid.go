package catalog

import (
	"crypto/rand"
	"fmt"
)

// NewUUID is a random one, version 4.
func NewUUID() (u [16]byte) {
	rand.Read(u[:]) // never fails, it says
	u[6] = u[6]&0x0F | 0x40
	u[8] = u[8]&0x3F | 0x80
	return u
}

// UUIDText is a UUID as people write it.
func UUIDText(u [16]byte) string {
	return fmt.Sprintf("%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:])
}
