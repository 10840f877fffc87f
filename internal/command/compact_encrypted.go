package command

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

func compactEncryptedCommands() []*Command {
	return []*Command{
		{Name: "compactStructuredEncryptionData", Doc: "Shrinks the metadata of an encrypted collection.", Run: compactEncrypted},
	}
}

// compactEncrypted finds no encrypted collection: they need a replica set.
func compactEncrypted(op *Op) (bson.Doc, error) {
	a := op.Args
	ns := a.Collection(op.DB)
	a.Required("compactionTokens")
	a.Doc("compactionTokens")
	a.Doc("encryptionInformation")
	a.Doc("anchorPaddingTokens")
	if err := a.Done(); err != nil {
		return nil, err
	}
	if ns.Coll == "" {
		return nil, mongoerr.New(mongoerr.InvalidNamespace, "Invalid namespace specified '%s'", ns.DB+".")
	}
	switch c := op.Query.Store.Catalog().Collection(ns); {
	case c == nil:
		return nil, mongoerr.New(mongoerr.NamespaceNotFound, "Collection '%s' does not exist", ns)
	case c.IsView():
		return nil, mongoerr.New(mongoerr.CommandNotSupportedOnView, "Cannot compact structured encryption data on a view: %s", ns)
	}
	return nil, mongoerr.New(6346807, "Target namespace is not an encrypted collection")
}
