// Package vectorsearch finds the documents whose vectors are the most similar to one that is asked for: the definitions of vectorSearch
// indexes, the argument of $vectorSearch, the score of a document. It compares each vector that it is shown, so what it finds is exact.
//
// What is wrong with a definition or a query is told with UnknownError, as MongoDB tells what its search process says, which does this
// work there.
package vectorsearch

import "github.com/ebbdb/ebb/internal/mongoerr"

// wrong is an error as MongoDB has it from its search process.
func wrong(format string, args ...any) error {
	return mongoerr.New(mongoerr.UnknownError, format, args...)
}
