package command

import (
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/parameter"
)

func TestSettleLogin(t *testing.T) {
	for _, c := range []struct {
		given        map[string]string
		sha1, sha256 int32
	}{
		{nil, 10000, 15000},
		{map[string]string{iterationsName: "12500"}, 12500, 15000},
		{map[string]string{iterationsName: "20000"}, 20000, 20000},
		{map[string]string{iterationsName: "20000", iterationsSHA256Name: "7000"}, 20000, 7000},
		{map[string]string{iterationsSHA256Name: "9999"}, 10000, 9999},
	} {
		r := parameter.NewRegistry(nil)
		AddParameters(r, nil)
		for name, text := range c.given {
			if _, err := r.Set(name, bson.String(text), parameter.Startup); err != nil {
				t.Fatal(err)
			}
		}
		if err := SettleLogin(r, c.given, nil); err != nil {
			t.Error(err)
		}
		if sha1, sha256 := r.Lookup(iterationsName).Get().Int32(), r.Lookup(iterationsSHA256Name).Get().Int32(); sha1 != c.sha1 || sha256 != c.sha256 {
			t.Errorf("%v: %d and %d", c.given, sha1, sha256)
		}
	}
}

// TestSettleSeparation: members' certificates are those of users only where members show none.
func TestSettleSeparation(t *testing.T) {
	for mode, want := range map[ClusterAuthMode]bool{ClusterAuthNone: true, ClusterAuthKeyFile: true, ClusterAuthSendKeyFile: false, ClusterAuthSendX509: false, ClusterAuthX509: false} {
		for _, value := range []string{"true", "false"} {
			r := parameter.NewRegistry(nil)
			AddParameters(r, nil)
			if _, err := r.Set(separationName, bson.String(value), parameter.Startup); err != nil {
				t.Fatal(err)
			}
			if err := SettleLogin(r, nil, NewClusterAuth(mode)); (err == nil) != (want || value == "true") {
				t.Errorf("%v, %s: %v", mode, value, err)
			}
		}
	}
}
