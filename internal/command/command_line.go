package command

import (
	"github.com/ebbdb/ebb/internal/auth/privilege"
	"github.com/ebbdb/ebb/internal/bson"
)

func commandLineCommands() []*Command {
	return []*Command{
		{Name: "getCmdLineOpts", Needs: Needs{OnCluster: actions(privilege.GetCmdLineOpts)}, Doc: "Says what the server was started with.", AdminOnly: true, Run: getCmdLineOpts},
	}
}

func getCmdLineOpts(op *Op) (bson.Doc, error) {
	if err := op.noArguments(); err != nil {
		return nil, err
	}
	parsed := op.Parsed
	if parsed == nil {
		parsed = bson.EmptyDoc
	}
	return bson.Build().Strings("argv", op.Argv).Document("parsed", parsed).Doc(), nil
}
