// Package scram is what a login by name and password goes by: what is stored of a password, and the server's side of a conversation in
// which a client shows that it knows it. It knows neither users nor connections.
package scram

import (
	"crypto/hmac"
	"crypto/md5"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"unicode/utf8"

	"github.com/xdg-go/scram"
	"github.com/xdg-go/stringprep"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// The mechanisms, by MongoDB's names, which are those of the fields of stored credentials, too.
const (
	SHA1   = "SCRAM-SHA-1"
	SHA256 = "SCRAM-SHA-256"
)

// Mechanisms are all of them.
func Mechanisms() []string { return []string{SHA1, SHA256} }

const (
	// maxPassword bounds a password, whose every byte SASLprep looks at.
	maxPassword = 64 << 10
	// MinIterations and MaxIterations bound how often a password is hashed, for what is stored as for what is made.
	MinIterations, MaxIterations = 5000, 10_000_000
	// fewestStored is what credentials that come from elsewhere have at least; clients refuse less.
	fewestStored = 4096
	// maxKey bounds a salt and a key as stored.
	maxKey = 256
)

// stored says how a mechanism's credentials look.
type stored struct {
	hash         scram.HashGeneratorFcn
	salt, digest int // in bytes
}

func of(mechanism string) (s stored, known bool) {
	switch mechanism {
	case SHA1:
		return stored{scram.SHA1, 16, 20}, true
	case SHA256:
		return stored{scram.SHA256, 28, 32}, true
	}
	return s, false
}

// Known says whether there is such a mechanism.
func Known(mechanism string) bool { _, known := of(mechanism); return known }

// CheckPassword is the error of a password that the mechanism has no credentials for. It tells nothing of the password.
func CheckPassword(mechanism, password string) error {
	_, err := prepare(mechanism, "", password)
	return err
}

// prepare is what of a password is hashed: for SCRAM-SHA-1 a digest of the user's name and it.
func prepare(mechanism, user, password string) (string, error) {
	switch {
	case len(password) > maxPassword:
		return "", mongoerr.New(mongoerr.BadValue, "Passwords may have %d bytes at most", maxPassword)
	case !utf8.ValidString(password):
		return "", mongoerr.New(mongoerr.BadValue, "Non UTF-8 data encountered")
	case mechanism == SHA1:
		digest := md5.Sum([]byte(user + ":mongo:" + password))
		return hex.EncodeToString(digest[:]), nil
	}
	prepared, err := stringprep.SASLprep.Prepare(password)
	if err != nil { // it names a character of the password
		return "", mongoerr.New(50692, "Error preflighting normalization: U_STRINGPREP_PROHIBITED_ERROR")
	}
	if prepared == "" {
		return "", mongoerr.New(50692, "Error preflighting normalization: U_ZERO_ERROR")
	}
	return prepared, nil
}

// Make returns what is stored of a password for a mechanism, with a new salt: {iterationCount, salt, storedKey, serverKey}. It takes
// milliseconds of a processor for 10,000 iterations.
func Make(mechanism, user, password string, iterations int) (bson.Doc, error) {
	m, known := of(mechanism)
	if !known {
		return nil, mongoerr.New(mongoerr.BadValue, "Unknown auth mechanism '%s'", mechanism)
	}
	prepared, err := prepare(mechanism, user, password)
	if err != nil {
		return nil, err
	}
	return m.store(prepared, m.newSalt(), iterations)
}

// MakeAlike is Make for several passwords of one user, with the same salt, so that a conversation can be held against all of them; see
// Credentials.Or.
func MakeAlike(mechanism, user string, passwords []string, iterations int) (made []bson.Doc, err error) {
	m, _ := of(mechanism)
	salt := m.newSalt()
	for _, password := range passwords {
		prepared, err := prepare(mechanism, user, password)
		if err != nil {
			return nil, err
		}
		d, err := m.store(prepared, salt, iterations)
		if err != nil {
			return nil, err
		}
		made = append(made, d)
	}
	return made, nil
}

// MakeDigested is Make for SCRAM-SHA-1 of what a client has made of the name and the password already.
func MakeDigested(digest string, iterations int) (bson.Doc, error) {
	m, _ := of(SHA1)
	if len(digest) > maxPassword {
		return nil, mongoerr.New(mongoerr.BadValue, "Passwords may have %d bytes at most", maxPassword)
	}
	return m.store(digest, m.newSalt(), iterations)
}

func (m stored) newSalt() []byte {
	salt := make([]byte, m.salt)
	_, _ = rand.Read(salt) // which never fails
	return salt
}

// store makes what is stored of a password that is prepared.
func (m stored) store(prepared string, salt []byte, iterations int) (bson.Doc, error) {
	if iterations < MinIterations || iterations > MaxIterations {
		return nil, mongoerr.New(mongoerr.BadValue, "A password is hashed %d to %d times, not %d times", MinIterations, MaxIterations, iterations)
	}
	client, _ := m.hash.NewClientUnprepped("", prepared, "")
	c, err := client.GetStoredCredentialsWithError(scram.KeyFactors{Salt: string(salt), Iters: iterations})
	if err != nil {
		return nil, err
	}
	text := base64.StdEncoding.EncodeToString
	return bson.Build().Int32("iterationCount", int32(iterations)).String("salt", text(salt)).
		String("storedKey", text(c.StoredKey)).String("serverKey", text(c.ServerKey)).Doc(), nil
}

// Credentials are what a conversation is held against.
type Credentials struct {
	c scram.StoredCredentials
	// other is what does as well; nil for nothing.
	other *scram.StoredCredentials
}

// Or is c, or other in its place: what was made of another password, alike.
func (c Credentials) Or(other Credentials) Credentials {
	c.other = &other.c
	return c
}

// Read finds a mechanism's credentials among those of a user, as they are stored; false where there are none that are whole.
func Read(mechanism string, all bson.Doc) (Credentials, bool) {
	var out Credentials
	m, known := of(mechanism)
	v := all.Lookup(mechanism)
	if !known || v.Type != bson.TypeObject {
		return out, false
	}
	d := v.Doc()
	iterations, exact := d.Lookup("iterationCount").AsInt64()
	salt, ok := key(d, "salt")
	storedKey, ok2 := key(d, "storedKey")
	serverKey, ok3 := key(d, "serverKey")
	if !exact || iterations < fewestStored || iterations > MaxIterations || !ok || !ok2 || !ok3 ||
		len(salt) == 0 || len(storedKey) != m.digest || len(serverKey) != m.digest {
		return out, false
	}
	out.c = scram.StoredCredentials{KeyFactors: scram.KeyFactors{Salt: string(salt), Iters: int(iterations)}, StoredKey: storedKey, ServerKey: serverKey}
	return out, true
}

func key(d bson.Doc, name string) ([]byte, bool) {
	v := d.Lookup(name)
	if v.Type != bson.TypeString || len(v.Str()) > base64.StdEncoding.EncodedLen(maxKey) {
		return nil, false
	}
	b, err := base64.StdEncoding.DecodeString(v.Str())
	return b, err == nil
}

// Decoy returns credentials that no password fits, for a user who is not there. They are the same each time, so that asking twice
// tells nothing: what they are follows from the secret and the name.
func Decoy(mechanism string, secret []byte, name string, iterations int) Credentials {
	m, _ := of(mechanism)
	derive := func(what string, n int) []byte {
		mac := hmac.New(sha256.New, secret)
		mac.Write([]byte(what + "\x00" + mechanism + "\x00" + name))
		return mac.Sum(nil)[:n]
	}
	return Credentials{c: scram.StoredCredentials{
		KeyFactors: scram.KeyFactors{Salt: string(derive("salt", m.salt)), Iters: iterations},
		StoredKey:  derive("stored", m.digest), ServerKey: derive("server", m.digest),
	}}
}
