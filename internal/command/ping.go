package command

import "github.com/ebbdb/ebb/internal/bson"

func pingCommands() []*Command {
	return []*Command{
		{Name: "ping", Doc: "Answers, which says that the server does.", NoAuth: true, Quiet: true, Run: ping},
	}
}

func ping(op *Op) (bson.Doc, error) { return bson.EmptyDoc, op.noArguments() }

// noArguments reads a command whose own field says nothing and that has no other.
func (op *Op) noArguments() error {
	op.Args.Ignore(op.Name())
	return op.Args.Done()
}
