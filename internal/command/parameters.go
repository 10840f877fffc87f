package command

import (
	"github.com/ebbdb/ebb/internal/auth/privilege"
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/parameter"
	"github.com/ebbdb/ebb/internal/storage/ttlchange"
	"github.com/ebbdb/ebb/internal/ttl"
)

func parameterCommands() []*Command {
	return []*Command{
		{Name: "getParameter", Needs: Needs{OnCluster: actions(privilege.GetParameter)}, Doc: "Shows the server's parameters.", AdminOnly: true, Run: getParameter},
		{Name: "setParameter", Needs: Needs{OnCluster: actions(privilege.SetParameter)}, Doc: "Changes the server's parameters.", AdminOnly: true, Run: setParameter},
	}
}

// wantedParameters is the command's own field: "*", a document, or anything that means nothing.
type wantedParameters struct {
	details, all bool
	when         parameter.When // only those that may be set then
}

func readWantedParameters(v bson.Value) (w wantedParameters, err error) {
	w = wantedParameters{all: v.Type == bson.TypeString && v.Str() == "*"}
	if v.Type != bson.TypeObject {
		return w, nil
	}
	a := NewArgs("getParameter", v.Doc())
	w.details = a.SafeBool("showDetails", false)
	w.all = a.SafeBool("allParameters", false)
	switch at, given := a.String("setAt"); {
	case !given:
	case at == "startup":
		w.when = parameter.Startup
	case at == "runtime":
		w.when = parameter.Runtime
	default:
		a.Fail(mongoerr.New(mongoerr.BadValue, "Enumeration value '%s' for field 'getParameter.setAt' is not a valid value.", at))
	}
	return w, a.Done()
}

func getParameter(op *Op) (bson.Doc, error) {
	w, err := readWantedParameters(op.Args.Value(op.Name()))
	if err != nil {
		return nil, err
	}
	b := bson.Build()
	found := 0
	show := func(p *parameter.Parameter) {
		if w.when != 0 && p.When&w.when == 0 {
			return
		}
		found++
		if !w.details {
			b.Value(p.Name, p.Get())
			return
		}
		b.Object(p.Name).Value("value", p.Get()).Bool("settableAtRuntime", p.When&parameter.Runtime != 0).
			Bool("settableAtStartup", p.When&parameter.Startup != 0).End()
	}
	if w.all {
		for _, p := range op.Params.All() {
			show(p)
		}
		return b.Doc(), nil
	}
	for it := op.Args.Document().Iter(); it.Next(); {
		if p := op.Params.Lookup(it.Key()); p != nil {
			show(p)
		}
	}
	if found == 0 {
		return nil, mongoerr.New(mongoerr.InvalidOptions, "no option found to get")
	}
	return b.Doc(), nil
}

// setParameter looks at all names before it sets the first, and answers with what that one was.
func setParameter(op *Op) (bson.Doc, error) {
	names, how, err := op.settableNames()
	if err != nil {
		return nil, err
	}
	b, done := bson.Build(), ttlchange.Loosened{}
	for i, name := range names {
		was, hidden, err := op.setOneParameter(name, how)
		done.Deleted += hidden.Deleted
		done.Kept += hidden.Kept
		if err != nil {
			return nil, err
		}
		if i == 0 {
			b.Value("was", was)
		}
		op.Log.Info("Successfully set parameter to new value", append([]any{"parameterName", name, "newValue", op.Args.Value(name).Text(), "oldValue", was.Text()}, op.asked()...)...)
		if name == ttl.HoldName {
			op.noteHold(was)
		}
		op.tellTTLParameter(name, was, op.Params.Lookup(name).Get(), hidden.Deleted)
	}
	op.noteHidden(b, done)
	return b.Doc(), nil
}

// settableNames are the parameters that are to be set, and what is said of documents that would not be hidden any more.
func (op *Op) settableNames() (names []string, how ttlchange.OnHidden, err error) {
	stopsHiding := !op.APIStrict && op.Args.Has(ttl.HideExpiredName)
	for it := op.Args.Document().Iter(); it.Next(); {
		name := it.Key()
		if name == op.Name() || isGeneric(name) || stopsHiding && isOnHidden(name) {
			continue
		}
		if err := op.Params.Settable(name, parameter.Runtime); err != nil {
			return nil, how, err
		}
		names = append(names, name)
	}
	if len(names) == 0 {
		return nil, how, mongoerr.New(mongoerr.InvalidOptions, "no option found to set, use help:true to see options ")
	}
	if stopsHiding {
		how = op.readOnHidden(op.Args)
		err = op.Args.Err()
	}
	return names, how, err
}

// isOnHidden says whether a field of setParameter says what becomes of documents that would not be hidden any more.
func isOnHidden(name string) bool { return name == "keepExpired" || name == "force" }

// knowsParameter says whether setParameter has a field of that name.
func (s *Server) knowsParameter(name string) bool {
	return s.Params.Lookup(name) != nil || isOnHidden(name)
}

// setOneParameter sets one. Before ttlHideExpired stops hiding, what it hides is deleted: nothing expired comes back.
func (op *Op) setOneParameter(name string, how ttlchange.OnHidden) (was bson.Value, done ttlchange.Loosened, err error) {
	v := op.Args.Value(name)
	set := func() (err error) {
		was, err = op.Params.SetWithin(op.patiently(), name, v, parameter.Runtime)
		return err
	}
	if name == ttl.HideExpiredName && op.flag(name) && !v.Truthy() {
		done, err = op.Query.DDL.StopHiding(op.patiently(), how, set)
		return was, done, err
	}
	return was, done, set()
}

// isGeneric says whether any command may carry the field.
func isGeneric(name string) bool {
	switch name {
	case "lsid", "txnNumber", "autocommit", "startTransaction", "stmtId", "stmtIds", "maxTimeMS", "comment", "readConcern", "writeConcern",
		"apiVersion", "apiStrict", "apiDeprecationErrors", "rawData":
		return true
	}
	for _, g := range genericFields {
		if g == name {
			return true
		}
	}
	return false
}
