package command

import (
	"slices"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
)

func TestConceal(t *testing.T) {
	c := &Command{Name: "createUser", Sensitive: []string{"pwd"}}
	for given, want := range map[string]string{
		`{createUser: "a", pwd: "secret", roles: []}`:             `{ createUser: "a", pwd: "xxx", roles: [] }`,
		`{createUser: "a", pwd: {x: "secret"}, pwd: "secret"}`:    `{ createUser: "a", pwd: "xxx", pwd: "xxx" }`,
		`{createUser: "a", customData: {pwd: "a user's choice"}}`: `{ createUser: "a", customData: { pwd: "a user's choice" } }`,
	} {
		if got := c.Conceal(bson.MustDoc(given)).String(); got != want {
			t.Errorf("%s is shown as %s, not %s", given, got, want)
		}
	}
}

// TestSecretsAreSensitive finds commands whose fields carry secrets by the names that MongoDB has for them.
func TestSecretsAreSensitive(t *testing.T) {
	for name, fields := range map[string][]string{
		"createUser": {"pwd"}, "updateUser": {"pwd"}, "saslStart": {"payload"}, "saslContinue": {"payload"}, "authenticate": {"key", "nonce"},
		"hello": {"speculativeAuthenticate"}, "isMaster": {"speculativeAuthenticate"},
	} {
		c := commands()[name]
		if c == nil {
			continue // which the server does not know
		}
		for _, f := range fields {
			if !slices.Contains(c.Sensitive, f) {
				t.Errorf("%s does not say that %s is sensitive", name, f)
			}
		}
	}
}

// TestSecretsAreNotShown has the profiler, which shows what currentOp and the slow log show, look at a command with a secret.
func TestSecretsAreNotShown(t *testing.T) {
	h := newHarness(t)
	h.server.table["find"].Sensitive = []string{"comment"}
	for _, text := range []string{`{profile: 2}`, `{find: "c", comment: "hunter2"}`, `{profile: 0}`} {
		h.send(t.Context(), "1", "test", bson.MustDoc(text))
	}
	shown := h.send(t.Context(), "1", "test", bson.MustDoc(`{find: "system.profile"}`)).Body.String()
	if strings.Contains(shown, "hunter2") || !strings.Contains(shown, `comment: "xxx"`) {
		t.Error(shown)
	}
}
