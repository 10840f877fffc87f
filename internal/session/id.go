package session

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"

	"github.com/ebbdb/ebb/internal/bson"
)

// The id of a session is the 16 bytes of its UUID and, where it is a user's, the digest of that behind them: a UUID that somebody else
// has guessed is another session.

const (
	uuidBytes = 16
	// UIDBytes is how long a user's digest is.
	UIDBytes = sha256.Size
)

// UID is the digest of a user, "name@db", as MongoDB makes it; of the empty name it is that of nobody.
func UID(user string) [UIDBytes]byte { return sha256.Sum256([]byte(user)) }

// OwnedID is the id of a session that belongs to a user; of nobody's it is the UUID alone.
func OwnedID(uuid string, uid []byte) string {
	if nobody := UID(""); bytes.Equal(uid, nobody[:]) {
		return uuid
	}
	return uuid + string(uid)
}

// UUIDOf and UIDOf are what an id is made of.
func UUIDOf(id string) string { return id[:min(len(id), uuidBytes)] }

// Shown is how MongoDB's messages show a session: its UUID, its user, and no transaction.
func Shown(id string) string {
	if id == "" {
		return "none"
	}
	u := UUIDOf(id)
	return fmt.Sprintf("%x-%x-%x-%x-%x - %s -  - ", u[:4], u[4:6], u[6:8], u[8:10], u[10:], base64.StdEncoding.EncodeToString(UIDOf(id)))
}

// UIDOf is the digest of the session's user.
func UIDOf(id string) []byte {
	if len(id) <= uuidBytes {
		uid := UID("")
		return uid[:]
	}
	return []byte(id[uuidBytes:])
}

// Document is a session's id as it is stored: its UUID and the digest of its user.
func Document(id string) bson.Doc {
	return bson.Build().Binary("id", 4, []byte(UUIDOf(id))).Binary("uid", 0, UIDOf(id)).Doc()
}

// FromDocument is the id that Document has made one of; false for what it has not.
func FromDocument(d bson.Doc) (id string, ok bool) {
	uuid, uid := d.Lookup("id"), d.Lookup("uid")
	if uuid.Type != bson.TypeBinary || uid.Type != bson.TypeBinary {
		return "", false
	}
	_, u := uuid.Binary()
	_, digest := uid.Binary()
	if len(u) != uuidBytes || len(digest) != UIDBytes {
		return "", false
	}
	return OwnedID(string(u), digest), true
}

// describe is a session's id as MongoDB prints it: its UUID and the digest of its user.
func describe(id string) string {
	u := UUIDOf(id)
	if len(u) != uuidBytes {
		return id
	}
	return fmt.Sprintf("%x-%x-%x-%x-%x - %s", u[:4], u[4:6], u[6:8], u[8:10], u[10:], base64.StdEncoding.EncodeToString(UIDOf(id)))
}
