package privilege

import (
	"slices"
	"testing"

	"github.com/ebbdb/ebb/internal/namespace"
)

func TestActionNames(t *testing.T) {
	seen := map[string]bool{}
	for a := range Action(actions) {
		if name := a.String(); name == "" || seen[name] {
			t.Errorf("action %d is called %q, which is nothing or another's name", a, name)
		}
		seen[a.String()] = true
		if b, ok := ActionNamed(a.String()); !ok || a != b {
			t.Errorf("%s is found as %s", a, b)
		}
	}
	if _, ok := ActionNamed("fly"); ok {
		t.Error("there is an action fly")
	}
	for a, name := range map[Action]string{Find: "find", CollMod: "collMod", ReIndex: "reIndex", ViewUser: "viewUser", ForceTTL: "forceTTL", Killop: "killop"} {
		if a.String() != name {
			t.Errorf("%s is called %s", name, a)
		}
	}
}

func TestAnyActionIsAll(t *testing.T) {
	all, any := AllActions(), ActionsOf(AnyAction)
	if !any.Includes(all) {
		t.Error("anyAction leaves some out")
	}
	if names := any.Names(); !slices.Equal(names, []string{"anyAction"}) {
		t.Errorf("it shows as %v", names)
	}
}

func TestAllows(t *testing.T) {
	ns := func(db, coll string) Resource { return Namespace(namespace.NS{DB: db, Coll: coll}) }
	for _, c := range []struct {
		name           string
		granted, asked Resource
		want           bool
	}{
		{"the same namespace", ns("a", "b"), ns("a", "b"), true},
		{"another collection", ns("a", "b"), ns("a", "c"), false},
		{"a database's collection", Database("a"), ns("a", "b"), true},
		{"a database's system collection", Database("a"), ns("a", "system.js"), false},
		{"a system collection by name", CollectionNamed("system.js"), ns("a", "system.js"), true},
		{"a database", Database("a"), Database("a"), true},
		{"a collection is no database", ns("a", "b"), Database("a"), false},
		{"any normal", AnyNormal(), ns("a", "b"), true},
		{"any normal database", AnyNormal(), Database("admin"), true},
		{"local is not normal", AnyNormal(), ns("local", "x"), false},
		{"config is not normal", AnyNormal(), Database("config"), false},
		{"system.users is not normal", AnyNormal(), ns("admin", "system.users"), false},
		{"the cluster is not normal", AnyNormal(), Cluster(), false},
		{"anything is the cluster", Anything(), Cluster(), true},
		{"anything is a system collection", Anything(), ns("local", "system.x"), true},
		{"the cluster is no database", Cluster(), Database("a"), false},
		{"buckets of any", AnyBuckets(), ns("a", "system.buckets.t"), true},
		{"buckets of a database", Buckets("a", ""), ns("a", "system.buckets.t"), true},
		{"buckets of another database", Buckets("b", ""), ns("a", "system.buckets.t"), false},
		{"buckets by name", Buckets("", "t"), ns("a", "system.buckets.t"), true},
		{"buckets of one", Buckets("a", "t"), ns("a", "system.buckets.t"), true},
		{"buckets are not normal", Database("a"), ns("a", "system.buckets.t"), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			var g Grants
			g.Add(On(c.granted, Find))
			if got := g.Allows(c.asked, Find); got != c.want {
				t.Errorf("Allows is %v", got)
			}
			if g.Allows(c.asked, Insert) {
				t.Error("another action is allowed, too")
			}
		})
	}
}

func TestIncludes(t *testing.T) {
	var g Grants
	g.Add(On(Database("a"), Find))
	g.Add(On(AnyNormal(), Insert))
	if !g.Includes(On(Collections("a", "b"), Find, Insert)) {
		t.Error("two grants together do not do")
	}
	if g.Includes(On(Collections("c", "b"), Find, Insert)) {
		t.Error("find of another database is in")
	}
	var nobody *Grants
	if nobody.Allows(Cluster(), Find) || nobody.Includes(On(Cluster(), Find)) {
		t.Error("nobody may do something")
	}
}

func BenchmarkAllows(b *testing.B) {
	var g Grants
	g.Add(On(AnyNormal(), Find, Insert))
	r := Collections("app", "sessions")
	for b.Loop() {
		if !g.Allows(r, Find) {
			b.Fatal("refused")
		}
	}
}
