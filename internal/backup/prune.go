package backup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ebbdb/ebb/internal/backup/repository"
)

// Keep says which backups stay: each that one of its rules keeps.
type Keep struct {
	// Last is how many of the newest of each server stay; Within is how young others are that stay, too, seen from Now.
	Last   int
	Within time.Duration
	Now    time.Time
	// BreakLocks has it go on beside others, who may be at work there or not.
	BreakLocks bool
}

// Pruned is what Prune has done.
type Pruned struct {
	Forgotten []string
	Kept      int
	Objects   int
	Bytes     int64
}

// Prune removes old backups, the content that no other needs, and oplogs whose backups are gone. It keeps one of each server at least, and
// removes no content while it cannot read a manifest.
func Prune(ctx context.Context, r *repository.Repository, k Keep) (p *Pruned, err error) {
	if k.Last < 1 {
		return nil, errors.New("one backup must stay at least")
	}
	if k.BreakLocks {
		if err := r.BreakLocks(ctx); err != nil {
			return nil, err
		}
	}
	lock, err := r.Lock(ctx, repository.Sweeping, "ebb backup prune")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, lock.Release(context.WithoutCancel(ctx))) }()
	ids, err := r.IDs(ctx)
	if err != nil {
		return nil, err
	}
	needed, newer, p := map[string]bool{}, map[string]int{}, &Pruned{} // newer are how many a server has
	for _, id := range slices.Backward(ids) {
		m, err := r.Manifest(ctx, id)
		if err != nil {
			return nil, fmt.Errorf("nothing is removed, for what backups need is not known: %w", err)
		}
		newer[m.Source]++
		if newer[m.Source] > k.Last && k.Now.Sub(m.At) > k.Within {
			p.Forgotten = append(p.Forgotten, id)
			continue
		}
		p.Kept++
		for _, f := range m.Files {
			needed[f.SHA256] = true
		}
	}
	orphans, err := r.Chains(ctx)
	if err != nil {
		return nil, err
	}
	orphans = slices.DeleteFunc(orphans, func(id string) bool { _, there := slices.BinarySearch(ids, id); return there })
	for _, id := range slices.Concat(p.Forgotten, orphans) {
		if err := r.Forget(ctx, id); err != nil {
			return nil, err
		}
	}
	if err := lock.Renew(ctx, "ebb backup prune"); err != nil {
		return nil, err
	}
	p.Objects, p.Bytes, err = r.Sweep(ctx, needed)
	return p, err
}
