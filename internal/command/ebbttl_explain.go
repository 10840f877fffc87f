package command

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/storage"
	"github.com/ebbdb/ebb/internal/ttl/policy"
)

// maxExplained is how many documents one command explains.
const maxExplained = 1000

// readExplained reads "explainMany"; nil when it is not there.
func readExplained(a *Args) bson.Doc {
	ids := a.Array("explainMany")
	n := 0
	for it := ids.Iter(); it.Next(); {
		if n++; n > maxExplained {
			a.Fail(mongoerr.New(mongoerr.BadValue, "'explainMany' takes at most %d _ids", maxExplained))
			break
		}
	}
	return ids
}

func (op *Op) explainExpiry(r *storage.Reader, id bson.Value) (bson.Doc, error) {
	b := bson.Build().String("ns", r.Catalog().NS.String()).Value("_id", id).Date("now", op.Now)
	err := op.appendExplained(b, r, id)
	return b.Doc(), err
}

func (op *Op) explainMany(r *storage.Reader, ids bson.Doc) (bson.Doc, error) {
	b := bson.Build().String("ns", r.Catalog().NS.String()).Date("now", op.Now).Array("documents")
	truncated, n := false, 0
	for it := ids.Iter(); it.Next(); n++ {
		if err := op.Ctx.Err(); err != nil {
			return nil, err
		}
		if truncated = b.Len()+len(it.Value().Data) > maxStatusBytes; truncated {
			break
		}
		b.Object(bson.IndexKey(n)).Value("_id", it.Value())
		if err := op.appendExplained(b, r, it.Value()); err != nil {
			return nil, err
		}
		b.End()
	}
	b.End()
	if truncated {
		b.Bool("truncated", true)
	}
	return b.Doc(), nil
}

func (op *Op) appendExplained(b *bson.Builder, r *storage.Reader, id bson.Value) error {
	e, found, err := op.TTL.Explain(r, id)
	if err != nil {
		return err
	}
	if b.Bool("found", found); !found {
		return nil
	}
	b.Bool("expires", e.Deadline != policy.Never).Bool("expired", e.Deadline <= op.Now).Bool("visible", !e.Hidden)
	if e.Deadline != policy.Never {
		b.Date("deadline", e.Deadline)
		if name := e.By.Name(); name != "" {
			b.String("by", name)
		}
	}
	if e.Deadline <= op.Now {
		if held := op.TTL.HeldIn(r.Catalog()); held != "" {
			b.String("heldUpBy", held)
		}
	}
	b.Date("lastModified", e.Record.Modified).Array("rules")
	for i, rule := range e.Rules {
		b.Object(bson.IndexKey(i))
		appendRule(b, rule.Index, rule.Field, rule.Seconds, rule.Hides)
		if rule.Deadline != policy.Never {
			b.Date("deadline", rule.Deadline)
		}
		if rule.InGrace {
			b.Date("graceUntil", rule.GraceUntil)
		}
		b.String("reason", rule.Why).End()
	}
	b.End().Strings("notes", e.Notes)
	return nil
}
