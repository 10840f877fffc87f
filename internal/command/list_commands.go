package command

import (
	"maps"
	"slices"

	"github.com/ebbdb/ebb/internal/bson"
)

func listCommandsCommands() []*Command {
	return []*Command{
		{Name: "listCommands", NoAuth: true, Doc: "Lists the commands there are.", Run: listCommands},
	}
}

func listCommands(op *Op) (bson.Doc, error) {
	b := bson.Build().Object("commands")
	for _, name := range slices.Sorted(maps.Keys(op.table)) {
		c := op.table[name]
		if c.Name != name {
			continue // an alias
		}
		var versions []string
		if c.stable() {
			versions = []string{"1"}
		}
		b.Object(name).String("help", c.Doc).Bool("requiresAuth", !c.NoAuth && !c.NoSession).Bool("secondaryOk", !c.WriteConcern).
			Bool("adminOnly", c.AdminOnly).Strings("apiVersions", versions).Strings("deprecatedApiVersions", nil).End()
	}
	return b.End().Doc(), nil
}
