package command

import (
	"github.com/ebbdb/ebb/internal/auth/privilege"
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/pipeline"
)

// Indexes of the search process are managed through a server that has one beside it. This one has none, and says so as MongoDB does.
func searchIndexCommands() []*Command {
	return []*Command{
		{Name: "createSearchIndexes", Needs: Needs{OnCollection: actions(privilege.CreateSearchIndexes)}, Doc: "Makes search indexes.", Run: searchIndexes(func(a *Args) { a.Required("indexes"); a.Array("indexes") })},
		{Name: "updateSearchIndex", Needs: Needs{OnCollection: actions(privilege.UpdateSearchIndex)}, Doc: "Changes a search index.", Run: searchIndexes(func(a *Args) { a.Required("definition"); a.Doc("definition") })},
		{Name: "dropSearchIndex", Needs: Needs{OnCollection: actions(privilege.DropSearchIndex)}, Doc: "Drops a search index.", Run: searchIndexes(nil)},
		{Name: "listSearchIndexes", Needs: Needs{OnCollection: actions(privilege.ListSearchIndexes)}, Doc: "Lists search indexes.", Run: searchIndexes(func(a *Args) { a.Doc("cursor") })},
	}
}

// searchIndexes reads the fields that one of the commands has beside the index that it names.
func searchIndexes(read func(*Args)) func(*Op) (bson.Doc, error) {
	return func(op *Op) (bson.Doc, error) {
		a := op.Args
		a.Collection(op.DB)
		a.String("id")
		a.String("name")
		if read != nil {
			read(a)
		}
		if err := a.Done(); err != nil {
			return nil, err
		}
		return nil, pipeline.ErrNoSearchIndexes()
	}
}
