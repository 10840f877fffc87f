package scram

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/xdg-go/scram"
)

const (
	// MaxMessage bounds what a client says at once.
	MaxMessage = 4 << 10
	// maxNonce bounds the client's half of what ties a conversation's messages together.
	maxNonce = 1 << 10
)

// The reasons for which a conversation fails. They say nothing of what the client has sent.
var (
	ErrTooLarge = errors.New("the message is too large")
	ErrMessage  = errors.New("the message is no SCRAM message")
	ErrOther    = errors.New("the client wants to act for somebody else")
	ErrProof    = errors.New("storedKey mismatch")
	ErrOver     = errors.New("the conversation is over")
)

// Conversation is the server's side of one login. It is used by one goroutine.
type Conversation struct {
	c *scram.ServerConversation
	// other is the same against what does as well as what c is held against; nil where nothing does. In the end it takes the place of c where it is
	// what fits.
	other  *scram.ServerConversation
	failed bool
	err    error // of the look-up
}

// NewConversation begins one by a mechanism that is known. lookup finds the credentials of whom the client names; it is called once at most.
func NewConversation(mechanism string, lookup func(user string) (Credentials, error)) *Conversation {
	m, _ := of(mechanism)
	conv := &Conversation{}
	nonce := newNonce()
	begin := func(lookup func(string) (scram.StoredCredentials, error)) *scram.ServerConversation {
		server, _ := m.hash.NewServer(lookup)
		return server.WithNonceGenerator(func() string { return nonce }).NewConversation()
	}
	conv.c = begin(func(user string) (scram.StoredCredentials, error) {
		c, err := lookup(user)
		conv.err = err
		if c.other != nil {
			conv.other = begin(func(string) (scram.StoredCredentials, error) { return *c.other, nil })
		}
		return c.c, err
	})
	return conv
}

// nonceBytes is how much of a conversation nobody can foresee.
const nonceBytes = 24

func newNonce() string {
	b := make([]byte, nonceBytes)
	_, _ = rand.Read(b) // which never fails
	return base64.StdEncoding.EncodeToString(b)
}

// Step answers a message. After an error the conversation is over, and so it is once Valid; an error of the look-up is returned as it is.
func (c *Conversation) Step(message string) (answer string, err error) {
	if c.failed || c.c.Done() {
		return "", ErrOver
	}
	if err = c.check(message); err == nil {
		answer, err = c.step(message)
	}
	c.failed = err != nil
	if err != nil {
		return "", err
	}
	return answer, nil
}

// check refuses what the library would take.
func (c *Conversation) check(message string) error {
	switch {
	case len(message) > MaxMessage:
		return ErrTooLarge
	case !utf8.ValidString(message):
		return ErrMessage
	case c.c.Username() != "":
		return nil
	}
	fields := strings.SplitN(message, ",", 5)
	if len(fields) < 4 || fields[2] == "n=" || fields[3] == "r=" || len(fields[3]) > maxNonce {
		return ErrMessage
	}
	if actsFor, named := strings.CutPrefix(fields[1], "a="); named && "n="+actsFor != fields[2] {
		return ErrOther
	}
	return nil
}

func (c *Conversation) step(message string) (string, error) {
	answer, err := c.c.Step(message)
	if c.other != nil {
		if other, failed := c.other.Step(message); err != nil && failed == nil {
			c.c, answer, err = c.other, other, nil
		}
	}
	switch {
	case err == nil:
		return answer, nil
	case c.err != nil:
		return "", c.err
	case strings.HasPrefix(answer, scram.ErrInvalidProof):
		return "", ErrProof
	}
	return "", ErrMessage // the library's own words hold what the client has sent
}

// Valid says whether the client has shown that it knows the password.
func (c *Conversation) Valid() bool { return !c.failed && c.c.Valid() }

// User is whom the client has named, "" while it has not.
func (c *Conversation) User() string { return c.c.Username() }
