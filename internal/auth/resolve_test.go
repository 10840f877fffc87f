package auth

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/ebbdb/ebb/internal/auth/privilege"
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// Roles that inherit one another end, each is counted once, what is not there allows nothing, and there is a limit.
func TestResolve(t *testing.T) {
	docs := map[Name]string{
		{"a", "app"}: "{roles: [{role: 'b', db: 'app'}, {role: 'gone', db: 'app'}], privileges: []}",
		{"b", "app"}: "{roles: [{role: 'a', db: 'app'}, {role: 'b', db: 'app'}, {role: 'read', db: 'app'}], privileges: [{resource: {db: 'app', collection: 'c'}, actions: ['insert']}]}",
	}
	stored := func(n Name) (bson.Doc, error) {
		if text, ok := docs[n]; ok {
			return bson.MustDoc(text), nil
		}
		return nil, nil
	}
	r, err := Resolve([]Name{{"a", "app"}}, stored)
	if err != nil {
		t.Fatal(err)
	}
	if want := []Name{{"a", "app"}, {"b", "app"}, {"read", "app"}}; !slices.Equal(r.All, want) {
		t.Errorf("the roles are %v, want %v", r.All, want)
	}
	for _, c := range []struct {
		coll    string
		action  privilege.Action
		allowed bool
	}{{"c", privilege.Insert, true}, {"c", privilege.Find, true}, {"d", privilege.Find, true}, {"d", privilege.Insert, false}, {"c", privilege.Remove, false}} {
		if got := r.Grants.Allows(privilege.Collections("app", c.coll), c.action); got != c.allowed {
			t.Errorf("action %v on %s: %v, want %v", c.action, c.coll, got, c.allowed)
		}
	}

	read := 0
	endless := func(Name) (bson.Doc, error) {
		if read++; read > maxRoles {
			t.Fatal("there is no limit")
		}
		return bson.MustDoc(fmt.Sprintf("{roles: [{role: 'r%d', db: 'app'}], privileges: []}", read)), nil
	}
	if _, err := Resolve([]Name{{"r0", "app"}}, endless); !mongoerr.Is(err, mongoerr.BadValue) {
		t.Error("roles without end are", err)
	}
	// What cannot be read allows nothing, and is no reason to keep its holder out, but for what says from where one may come.
	for text, want := range map[string]string{
		"{roles: 1}": "1 <nil>", "{roles: [], privileges: [1]}": "1 <nil>", "{roles: [], privileges: [{resource: 1, actions: ['find']}]}": "1 <nil>",
		"{roles: [], privileges: [], authenticationRestrictions: 1}": "0 Invalid or missing field 'authenticationRestrictions' in the stored document",
	} {
		r, err := Resolve([]Name{{"odd", "app"}, {"read", "app"}}, func(Name) (bson.Doc, error) { return bson.MustDoc(text), nil })
		if got := fmt.Sprint(len(r.Unreadable), " ", err); got != want || err == nil && !slices.Equal(r.All, []Name{{"read", "app"}}) {
			t.Errorf("%s: %s, %v", text, got, r.All)
		}
	}
}

func TestRestrictions(t *testing.T) {
	for _, c := range []struct {
		text, client, server string
		allowed              bool
	}{
		{"[]", "192.0.2.1", "192.0.2.9", true},
		{"[{clientSource: ['192.0.2.0/24']}]", "192.0.2.1", "192.0.2.9", true},
		{"[{clientSource: ['192.0.2.0/24']}]", "::ffff:192.0.2.1", "192.0.2.9", true},
		{"[{clientSource: ['192.0.2.77/24']}]", "192.0.2.1", "192.0.2.9", true},
		{"[{clientSource: ['192.0.2.0/24']}]", "192.0.3.1", "192.0.2.9", false},
		{"[{clientSource: ['192.0.2.0/24'], serverAddress: ['192.0.2.8']}]", "192.0.2.1", "192.0.2.9", false},
		{"[{clientSource: ['192.0.2.1']}, {serverAddress: ['192.0.2.9']}]", "192.0.3.1", "192.0.2.9", true},
		{"[{clientSource: []}]", "192.0.2.1", "192.0.2.9", false},
		{"[{clientSource: ['0.0.0.0/0', '::/0']}]", "", "", false}, // a Unix socket has no address
		{"[{clientSource: ['2001:db8::/32']}]", "2001:db8::1", "::1", true},
	} {
		rs, err := ParseRestrictions("r", bson.MustDoc("{a: "+c.text+"}").Lookup("a").Doc())
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		client, _ := netip.ParseAddr(c.client)
		server, _ := netip.ParseAddr(c.server)
		if got := rs.Allow(client, server); got != c.allowed {
			t.Errorf("%s from %q to %q: %v, want %v", c.text, c.client, c.server, got, c.allowed)
		}
	}
	for text, code := range map[string]mongoerr.Code{
		"[1]":                                   mongoerr.TypeMismatch,
		"[{}]":                                  mongoerr.CollectionIsEmpty,
		"[{nosuch: 1}]":                         40415,
		"[{clientSource: '127.0.0.1'}]":         mongoerr.TypeMismatch,
		"[{clientSource: [1]}]":                 mongoerr.TypeMismatch,
		"[{clientSource: ['localhost']}]":       mongoerr.BadValue,
		"[{clientSource: ['127.0.0.1/33']}]":    mongoerr.BadValue,
		"[{serverAddress: ['fe80::1%eth0']}]":   mongoerr.BadValue,
		"[{serverAddress: ['fe80::1%eth0/8']}]": mongoerr.BadValue,
	} {
		if _, err := ParseRestrictions("r", bson.MustDoc("{a: "+text+"}").Lookup("a").Doc()); !mongoerr.Is(err, code) {
			t.Errorf("%s: %v, want code %d", text, err, code)
		}
	}
}
