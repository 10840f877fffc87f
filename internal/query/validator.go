package query

import (
	"context"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/match"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// validation says whether a collection takes a document; the zero value takes all. Its errors have what MongoDB tells of a
// failure.
type validation struct {
	filter *match.Filter
	lang   *language
	// moderate: a document that was not valid before may stay so.
	moderate bool
	// encrypted is the collection whose documents may have nothing plain where clients encrypt; nil for any other.
	encrypted *catalog.Collection
}

// validator is the check of coll's validator.
func (e *Engine) validator(ctx context.Context, coll *catalog.Collection, call *Call) (validation, error) {
	o := coll.Options
	if o.IsEncrypted && !call.Bypass {
		v, err := e.explicit(ctx, coll, call)
		v.encrypted = coll
		return v, err
	}
	return e.explicit(ctx, coll, call)
}

// explicit is the check that the collection's options say.
func (e *Engine) explicit(ctx context.Context, coll *catalog.Collection, call *Call) (validation, error) {
	o := coll.Options
	if call.Bypass || o.Validator.IsEmpty() || o.ValidationLevel == "off" || o.ValidationAction == "warn" {
		return validation{}, nil
	}
	plain := Call{Now: call.Now, ClusterTime: call.ClusterTime}
	lang, err := e.language(ctx, &plain, coll)
	if err != nil {
		return validation{}, err
	}
	filter, err := e.filters.Parse(o.Validator, match.Options{Collation: lang.collation, Exprs: lang.exprs, Allow: match.AllowMatch, AsWritten: true})
	return validation{filter: filter, lang: lang, moderate: o.ValidationLevel == "moderate"}, err
}

// document checks a document that is new.
func (v validation) document(doc bson.Doc) error { return v.successor(nil, doc) }

// successor checks what old is to become, nil for a new document.
func (v validation) successor(old, doc bson.Doc) error {
	if v.encrypted != nil {
		if err := checkEncrypted(v.encrypted.Options.Encrypted, old, doc); err != nil {
			return err
		}
	}
	if v.filter == nil {
		return nil
	}
	ok, err := v.filter.Match(v.lang.env, doc)
	if err != nil || ok {
		return err
	}
	return mongoerr.New(mongoerr.DocumentValidationFailure, "Document failed validation").WithInfo(
		bson.Build().Value("failingDocumentId", doc.Lookup("_id")).Document("details", v.filter.WhyNot(v.lang.env, doc)).Doc())
}

// change checks what old is to become.
func (v validation) change(old, doc bson.Doc) error {
	err := v.successor(old, doc)
	if err != nil && v.moderate && v.document(old) != nil {
		return nil
	}
	return err
}
