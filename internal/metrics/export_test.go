package metrics

import "github.com/ebbdb/ebb/internal/bson"

const (
	MaxCollections = maxCollections
	MaxConns       = maxConns
)

// Unknown are the fields of replies of serverStatus that have no row, and the rows that none of their fields has.
func Unknown(replies ...bson.Doc) (fields []string, rows []string) {
	table := statusTable()
	used := make([]bool, len(table))
	for _, reply := range replies {
		eachField(reply, nil, func(path []string, _ float64) {
			for i := range table {
				if _, ok := table[i].matches(path); ok {
					used[i] = true
					return
				}
			}
			fields = append(fields, joined(path))
		})
	}
	for i := range table {
		if !used[i] {
			rows = append(rows, table[i].path)
		}
	}
	return fields, rows
}

func joined(path []string) (s string) {
	for i, name := range path {
		if i > 0 {
			s += "/"
		}
		s += name
	}
	return s
}
