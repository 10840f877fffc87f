package command

import (
	"math"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/parameter"
)

func parameterCommands() []*Command {
	return []*Command{
		{Name: "getParameter", Doc: "Shows the server's parameters.", AdminOnly: true, Run: getParameter},
		{Name: "setParameter", Doc: "Changes one of the server's parameters.", AdminOnly: true, Run: setParameter},
	}
}

// AddFixedParameters enters what clients ask for and Ebb only states.
func AddFixedParameters(r *parameter.Registry) {
	parameter.NewFixed(r, "mongotHost", bson.String(""))
	parameter.NewFixed(r, "searchIndexManagementHostAndPort", bson.String(""))
	parameter.NewFixed(r, "featureCompatibilityVersion", bson.Build().String("version", "8.2").Doc().Value())
	parameter.NewFixed(r, "authenticationMechanisms", bson.ArrayOf())
	parameter.NewFixed(r, "enableTestCommands", bson.False)
	parameter.NewFixed(r, "maxBSONDepth", bson.Int32(180))
	parameter.NewInt(r, "logLevel", parameter.Both, 0, 0, 5, false)
	parameter.NewBool(r, "quiet", parameter.Both, false)
	parameter.NewInt(r, "cursorTimeoutMillis", parameter.Both, 600000, 1, math.MaxInt64, true)
	parameter.NewInt(r, "localLogicalSessionTimeoutMinutes", parameter.Startup, sessionMinutes, 1, math.MaxInt32, false)
	addVerbosity(r)
}

// addVerbosity keeps the log's verbosity by component. Ebb logs on one level; the tree is kept for those who set it.
func addVerbosity(r *parameter.Registry) {
	level := bson.Build().Int32("verbosity", 0).Doc().Value()
	r.Add(&parameter.Parameter{Name: "logComponentVerbosity", When: parameter.Both,
		Get: func() bson.Value { return level },
		Set: func(v bson.Value) error {
			if v.Type != bson.TypeObject {
				return mongoerr.New(mongoerr.TypeMismatch, "log component verbosity is not a BSON object: %s", v)
			}
			if err := checkVerbosity(v.Doc(), 0); err != nil {
				return err
			}
			level = v.Clone()
			return nil
		}})
}

func checkVerbosity(d bson.Doc, depth int) error {
	for it := d.Iter(); it.Next(); {
		switch v := it.Value(); {
		case it.Key() == "verbosity" && v.IsNumber():
		case v.Type == bson.TypeObject && depth < 4:
			if err := checkVerbosity(v.Doc(), depth+1); err != nil {
				return err
			}
		case it.Key() != "verbosity" && v.IsNumber():
		default:
			return mongoerr.New(mongoerr.BadValue, "Invalid log component option %s: %s", it.Key(), v)
		}
	}
	return nil
}

func getParameter(op *Op) (bson.Doc, error) {
	a := op.Args
	want := a.Value(op.Name())
	details, all := false, want.Type == bson.TypeString && want.Str() == "*"
	if want.Type == bson.TypeObject {
		o := NewArgs("getParameter", want.Doc())
		details = o.Bool("showDetails", false)
		all = o.Bool("allParameters", false)
		o.Ignore("setAt")
		if err := o.Done(); err != nil {
			return nil, err
		}
	}
	b := bson.Build()
	found := false
	show := func(p *parameter.Parameter) {
		found = true
		if !details {
			b.Value(p.Name, p.Get())
			return
		}
		b.Object(p.Name).Value("value", p.Get()).Bool("settableAtRuntime", p.When&parameter.Runtime != 0).
			Bool("settableAtStartup", p.When&parameter.Startup != 0).End()
	}
	if all {
		for _, p := range op.Params.All() {
			show(p)
		}
		return b.Doc(), nil
	}
	for it := a.Document().Iter(); it.Next(); {
		if p := op.Params.Lookup(it.Key()); p != nil {
			show(p)
		}
	}
	if !found {
		return nil, mongoerr.New(mongoerr.InvalidOptions, "no option found to get")
	}
	return b.Doc(), nil
}

func setParameter(op *Op) (bson.Doc, error) {
	b := bson.Build()
	n := 0
	for it := op.Args.Document().Iter(); it.Next(); {
		name := it.Key()
		if name == op.Name() || isGeneric(name) {
			continue
		}
		if n++; n > 1 {
			return nil, mongoerr.New(mongoerr.InvalidOptions, "setParameter takes one parameter at a time")
		}
		was, err := op.Params.Set(name, it.Value(), parameter.Runtime)
		if err != nil {
			return nil, err
		}
		b.Value("was", was)
	}
	if n == 0 {
		return nil, mongoerr.New(mongoerr.InvalidOptions, "no option found to set, use help:true to see options ")
	}
	return b.Doc(), nil
}

// isGeneric says whether any command may carry the field.
func isGeneric(name string) bool {
	switch name {
	case "lsid", "txnNumber", "autocommit", "startTransaction", "stmtId", "stmtIds", "maxTimeMS", "comment", "readConcern", "writeConcern",
		"apiVersion", "apiStrict", "apiDeprecationErrors":
		return true
	}
	for _, g := range genericFields {
		if g == name {
			return true
		}
	}
	return false
}
