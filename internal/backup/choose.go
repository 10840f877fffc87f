package backup

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ebbdb/ebb/internal/backup/place"
	"github.com/ebbdb/ebb/internal/backup/repository"
)

// maxNamed bounds how many servers an error names.
const maxNamed = 10

// Newest is the newest backup of a server, as Manifest.Source names it. Where none is named, all backups must be of one.
func Newest(ctx context.Context, r *repository.Repository, source string) (*repository.Manifest, error) {
	all, err := backupsOf(ctx, r, source)
	if err != nil {
		return nil, err
	}
	return r.Manifest(ctx, all[0].ID)
}

// backupsOf are the backups of a server, newest first, one at least, without their files, which may be many. One that is damaged, and so
// may be anybody's, is passed over behind the first; before that it is an error.
func backupsOf(ctx context.Context, r *repository.Repository, source string) (all []*repository.Manifest, err error) {
	ids, err := r.IDs(ctx)
	if err != nil {
		return nil, err
	}
	sources := map[string]bool{}
	for _, id := range slices.Backward(ids) {
		m, err := r.Manifest(ctx, id)
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case err != nil && (len(all) == 0 || !place.IsFault(err)):
			return nil, err
		case err != nil:
			continue
		}
		sources[m.Source] = true
		if source == "" || m.Source == source {
			m.Files = nil
			all = append(all, m)
		}
	}
	switch {
	case len(ids) == 0:
		return nil, fmt.Errorf("%s has no backup", r)
	case len(all) == 0:
		return nil, fmt.Errorf("%s has no backup of %s, but of %s", r, source, named(sources))
	case source == "" && len(sources) > 1:
		return nil, fmt.Errorf("%s has backups of several servers: %s; --source says of which, or --backup which backup", r, named(sources))
	}
	return all, nil
}

// named are the names of servers, in words.
func named(sources map[string]bool) string {
	names := slices.Sorted(maps.Keys(sources))
	if more := len(names) - maxNamed; more > 0 {
		names = append(names[:maxNamed], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}
