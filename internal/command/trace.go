package command

import (
	"strings"
	"time"
)

// trace tells the tracer of the command, which is over.
func (op *Op) trace(micros int64, err error) {
	_, collection, _ := strings.Cut(op.Running.NS, ".")
	if collection == "$cmd" {
		collection = ""
	}
	op.Tracer.Note(op.Command.Name, op.DB, collection, op.Running.Started, time.Duration(micros)*time.Microsecond, &op.Running.Stats, err)
}
