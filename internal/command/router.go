package command

import "github.com/ebbdb/ebb/internal/bson"

// routerCommands are what only a server has that clients see as a router.
func routerCommands() []*Command {
	return []*Command{
		{Name: "isdbgrid", Needs: Needs{Nothing: true}, Doc: "Says that the server is a router, and on what machine it runs.", Run: isDBGrid},
	}
}

func isDBGrid(op *Op) (bson.Doc, error) {
	op.Args.Ignore(op.Name())
	if err := op.Args.Done(); err != nil {
		return nil, err
	}
	return bson.Build().Int32("isdbgrid", 1).String("hostname", op.theMachine().Name).Doc(), nil
}
