package scram

import (
	"github.com/xdg-go/scram"

	"github.com/ebbdb/ebb/internal/mongoerr"
)

// Client is the client's side of one login. It is used by one goroutine.
type Client struct{ c *scram.ClientConversation }

// NewClient begins one as a user whose password is known. The error of a password that the mechanism cannot take tells nothing of it.
func NewClient(mechanism, user, password string) (*Client, error) {
	m, known := of(mechanism)
	if !known {
		return nil, mongoerr.New(mongoerr.BadValue, "Unknown auth mechanism '%s'", mechanism)
	}
	prepared, err := prepare(mechanism, user, password)
	if err != nil {
		return nil, err
	}
	c, err := m.hash.NewClientUnprepped(user, prepared, "")
	if err != nil {
		return nil, mongoerr.New(mongoerr.BadValue, "The name of the user cannot be said in SCRAM")
	}
	return &Client{c.NewConversation()}, nil
}

// Step answers what the server has said; at first that is nothing.
func (c *Client) Step(said string) (string, error) { return c.c.Step(said) }

// Valid says that the server has taken the password, and has shown that it knows it as well.
func (c *Client) Valid() bool { return c.c.Valid() }
