package command

import (
	"github.com/ebbdb/ebb/internal/auth/privilege"
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/namespace"
)

// text is a field that is a text, without reading it; "" for none.
func (op *Op) text(key string) string {
	if v := op.Args.peek(key); v.Type == bson.TypeString {
		return v.Str()
	}
	return ""
}

// needsCreate is what create needs: who may insert into a collection may make it, too, but no view.
func needsCreate(op *Op) error {
	may := op.mayNamed(privilege.CreateCollection)
	switch {
	case op.Args.peek("capped").Truthy() && !op.mayNamed(privilege.ConvertToCapped):
		return op.refusal()
	case op.Args.peek("viewOn").IsMissing():
		return op.permitted(may || op.mayNamed(privilege.Insert))
	case !may:
		return op.refusal()
	}
	return op.needsView()
}

// needsView is what it takes to say what a view shows: whoever may read the view has to be allowed to read all that it shows. Who may not
// read it may have it show what others may read, as long as those are collections of users.
func (op *Op) needsView() error {
	on, _ := op.named()
	may := op.May
	if !op.May(on, privilege.Find) {
		may = func(r privilege.Resource, a privilege.Action) bool {
			return a == privilege.Find && r.IsNormal() || op.May(r, a)
		}
	}
	asker := op.asker()
	asker.May = may
	return op.permits(asker, namespace.NS{DB: op.DB, Coll: op.text("viewOn")}, op.Args.peek("pipeline"))
}

// needsCollMod is what collMod needs: all of it or, to change nothing but a TTL, that.
func needsCollMod(op *Op) error {
	if !op.mayNamed(privilege.CollMod) && !(op.changesTTLOnly() && op.mayNamed(privilege.ChangeTTL)) {
		return op.refusal()
	}
	if !op.Args.peek("viewOn").IsMissing() || !op.Args.peek("pipeline").IsMissing() {
		if err := op.needsView(); err != nil {
			return err
		}
	}
	return needsForce(op)
}

// changesTTLOnly says whether a collMod is about when documents expire, and about nothing else.
func (op *Op) changesTTLOnly() bool {
	for it := op.Args.Document().Iter(); it.Next(); {
		switch it.Key() {
		case op.Name(), "expireAfterSeconds", "ttlPaused", "dryRun", "keepExpired", "force", "sample", "forecast":
		case "index":
			if it.Value().Type != bson.TypeObject {
				return false
			}
			for f := it.Value().Doc().Iter(); f.Next(); {
				switch f.Key() {
				case "name", "keyPattern", "expireAfterSeconds", "hideExpired":
				default:
					return false
				}
			}
		default:
			if !isGeneric(it.Key()) {
				return false
			}
		}
	}
	return true
}

// needsForce is what it takes to go past the guard against mass expiry, and to be shown documents that would expire, and when others do.
func needsForce(op *Op) error {
	asks := func(option string) bool { return !op.Args.peek(option).IsMissing() }
	return op.permitted((!op.Args.peek("force").Truthy() || op.mayNamed(privilege.ForceTTL)) &&
		(!asks("sample") || op.mayNamed(privilege.Find)) && (!asks("forecast") || op.mayNamed(privilege.ReadExpiry)))
}

// needsRename is what it takes to give a collection another name. Within a database there is an action for it, with which nobody gets to read
// under the new name what could not be read under the old one.
func needsRename(op *Op) error {
	from, to := namespace.Split(op.text(op.Name())), namespace.Split(op.text("to"))
	drop := op.Args.peek("dropTarget")
	drops := drop.Truthy() || drop.Type == bson.TypeBinary
	if drops && !op.mayOn(to, privilege.DropCollection) {
		return op.refusal()
	}
	if from.DB == to.DB && !from.IsSystem() && !to.IsSystem() && op.May(privilege.Database(from.DB), privilege.RenameCollectionSameDB) &&
		(op.mayOn(from, privilege.Find) || !op.mayOn(to, privilege.Find)) {
		return nil
	}
	return op.permitted(op.mayOn(from, privilege.Find, privilege.DropCollection) && op.mayOn(to, privilege.Insert, privilege.CreateIndex))
}

func needsCloneAsCapped(op *Op) error {
	return op.permitted(op.mayOn(namespace.NS{DB: op.DB, Coll: op.text("toCollection")}, privilege.Insert, privilege.CreateIndex, privilege.ConvertToCapped))
}
