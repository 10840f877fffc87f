package command

import (
	"github.com/ebbdb/ebb/internal/auth/privilege"
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

func compactEncryptedCommands() []*Command {
	return []*Command{
		{Name: "compactStructuredEncryptionData", Needs: Needs{OnCollection: actions(privilege.CompactStructuredEncryptionData)}, Doc: "Shrinks the metadata of an encrypted collection.", Run: compactEncrypted},
	}
}

// compactEncrypted finds nothing to compact: nothing encrypted for queries is ever stored.
func compactEncrypted(op *Op) (bson.Doc, error) {
	a := op.Args
	ns := a.Collection(op.DB)
	a.Required("compactionTokens")
	tokens := a.Doc("compactionTokens")
	a.Doc("encryptionInformation")
	a.Doc("anchorPaddingTokens")
	if err := a.Done(); err != nil {
		return nil, err
	}
	if ns.Coll == "" {
		return nil, mongoerr.New(mongoerr.InvalidNamespace, "Invalid namespace specified '%s'", ns.DB+".")
	}
	c := op.Query.Store.Catalog().Collection(ns)
	switch {
	case c == nil:
		return nil, mongoerr.New(mongoerr.NamespaceNotFound, "Collection '%s' does not exist", ns)
	case c.IsView():
		return nil, mongoerr.New(mongoerr.CommandNotSupportedOnView, "Cannot compact structured encryption data on a view: %s", ns)
	case !c.Options.IsEncrypted:
		return nil, mongoerr.New(6346807, "Target namespace is not an encrypted collection")
	}
	for i := range c.Options.Encrypted {
		if path := c.Options.Encrypted[i].Dotted(); tokens.Lookup(path).IsMissing() {
			return nil, mongoerr.New(7294900, "Compaction token missing for encrypted field path %s", path)
		}
	}
	return bson.Build().Object("stats").Object("ecoc").Int64("read", 0).Int64("deleted", 0).End().
		Object("esc").Int64("read", 0).Int64("inserted", 0).Int64("updated", 0).Int64("deleted", 0).End().End().Doc(), nil
}
