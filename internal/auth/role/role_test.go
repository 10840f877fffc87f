package role

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "write what is in testdata anew")

// TestBuiltinRoles holds what the roles allow, line by line, to what was read once.
func TestBuiltinRoles(t *testing.T) {
	var b strings.Builder
	for _, db := range []string{"admin", "app"} {
		for _, name := range Names(db) {
			if db == "app" && name != "read" && name != "dbAdmin" {
				continue // like those of admin
			}
			g, ok := Builtin(name, db)
			if !ok {
				t.Fatalf("%s@%s is listed and not there", name, db)
			}
			fmt.Fprintf(&b, "%s@%s\n", name, db)
			for _, p := range g.Privileges() {
				fmt.Fprintf(&b, "  %s: %s\n", p.Resource.Doc(), strings.Join(p.Actions.Names(), " "))
			}
		}
	}
	const file = "testdata/roles.txt"
	if *rewrite {
		if err := os.WriteFile(file, []byte(b.String()), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if b.String() != string(want) {
		t.Errorf("the roles are\n%s", b.String())
	}
}

func TestRolesOfAdminAlone(t *testing.T) {
	for _, name := range []string{"root", "__system", "readAnyDatabase", "clusterMonitor", "backup"} {
		if IsBuiltin(name, "app") || !IsBuiltin(name, "admin") {
			t.Errorf("%s is not a role of admin alone", name)
		}
	}
	if !IsBuiltin("read", "app") || IsBuiltin("nosuch", "admin") {
		t.Error("read is no role of a database, or nosuch is one")
	}
}
