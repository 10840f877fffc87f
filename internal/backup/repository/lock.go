package repository

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/ebbdb/ebb/internal/backup/place"
)

// Who removes what no backup needs must be alone: a backup under way relies on content that it found. So each of the two leaves a lock in the
// repository, which is an object with the time, and looks for those of others after that. A lock that is not renewed is old after a while, and
// means nothing.

const (
	// LockRenewal is how often a lock is written anew, and lockAge how old one is that nobody renews any more.
	LockRenewal = time.Minute
	lockAge     = 15 * time.Minute
	// maxLocks bounds how many are looked at.
	maxLocks = 10_000
)

// LockKind is what a lock is for.
type LockKind string

// The kinds: any number may add at a time, and who sweeps is alone.
const (
	Adding   LockKind = "add"
	Sweeping LockKind = "sweep"
)

// Lock is one that is held.
type Lock struct {
	repository *Repository
	name       string
	kind       LockKind
}

type lockFile struct {
	Kind LockKind  `json:"kind"`
	At   time.Time `json:"at"`
	By   string    `json:"by"`
}

// Lock takes a lock; by is who.
func (r *Repository) Lock(ctx context.Context, kind LockKind, by string) (*Lock, error) {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	l := &Lock{r, lockPrefix + string(kind) + "-" + hex.EncodeToString(b[:]), kind}
	if err := l.write(ctx, by); err != nil {
		return nil, err
	}
	if err := l.look(ctx); err != nil {
		return nil, errors.Join(err, l.Release(ctx))
	}
	return l, nil
}

// Renew says that whoever holds it still does. It fails where somebody has broken it.
func (l *Lock) Renew(ctx context.Context, by string) error {
	if _, err := l.repository.place.Stat(ctx, l.name); err != nil {
		return fmt.Errorf("somebody has broken the lock of %q: %w", by, err)
	}
	return l.write(ctx, by)
}

func (l *Lock) write(ctx context.Context, by string) error {
	b, err := json.Marshal(lockFile{l.kind, l.repository.clock.Now().UTC(), by})
	if err != nil {
		return err
	}
	return l.repository.place.Put(ctx, l.name, bytes.NewReader(b), int64(len(b)))
}

// look refuses where others hold what this one must not be beside. Locks that are old are removed.
func (l *Lock) look(ctx context.Context) error {
	n := 0
	now := l.repository.clock.Now()
	return l.repository.place.List(ctx, lockPrefix, func(o place.Object) error {
		if n++; n > maxLocks {
			return fmt.Errorf("%s has more than %d locks", l.repository, maxLocks)
		}
		if o.Name == l.name {
			return nil
		}
		b, err := place.ReadSmall(ctx, l.repository.place, o.Name, maxSmall)
		if errors.Is(err, place.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		var other lockFile
		if err := json.Unmarshal(b, &other); err != nil {
			return fmt.Errorf("%s in %s is not a lock; remove it if nobody works there: %w", o.Name, l.repository, err)
		}
		if age := now.Sub(other.At); age > lockAge || age < -lockAge {
			return l.repository.place.Delete(ctx, o.Name)
		}
		if l.kind == Sweeping || other.Kind == Sweeping {
			return fmt.Errorf("%s is in use by %q since %s at least (%s)", l.repository, other.By, other.At.Format(time.RFC3339), other.Kind)
		}
		return nil
	})
}

// Release gives it up.
func (l *Lock) Release(ctx context.Context) error { return l.repository.place.Delete(ctx, l.name) }

// BreakLocks removes the locks of all others. Who is at work there finds that out when the lock is renewed.
func (r *Repository) BreakLocks(ctx context.Context) error {
	var names []string
	err := r.place.List(ctx, lockPrefix, func(o place.Object) error {
		names = append(names, o.Name)
		return nil
	})
	for _, name := range names {
		err = errors.Join(err, r.place.Delete(ctx, name))
	}
	return err
}
