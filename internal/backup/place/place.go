// Package place is where repositories of backups lie: a folder, or a bucket of an object store that speaks S3. It keeps objects under names,
// whole or not at all, and knows nothing of what they are.
package place

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// ErrNotFound is of a name under which there is nothing.
var ErrNotFound = errors.New("there is no such object")

// Fault is what is wrong with what a place holds. An error that is none, nor ErrNotFound, says no more than that it was not read.
type Fault struct{ error }

// Faultf makes a Fault.
func Faultf(format string, args ...any) error { return Fault{fmt.Errorf(format, args...)} }

// Unwrap is for errors.Is.
func (f Fault) Unwrap() error { return f.error }

// IsFault says whether an error tells what a place holds or lacks, and not that it cannot be reached.
func IsFault(err error) bool {
	var f Fault
	return errors.As(err, &f) || errors.Is(err, ErrNotFound)
}

// Object is what a list tells of one.
type Object struct {
	Name  string
	Bytes int64
	// Written is when, by the clock of the place.
	Written time.Time
}

// Place keeps objects. Names are of letters, digits, dots and hyphens, with slashes between parts; CheckName says which. It may be used by
// several goroutines.
type Place interface {
	// Put writes an object of so many bytes, in the place of one that is there: whole or not at all, and on stable storage when it returns.
	Put(ctx context.Context, name string, r io.Reader, bytes int64) error
	// Get reads an object; ErrNotFound where there is none.
	Get(ctx context.Context, name string) (io.ReadCloser, error)
	// Stat says how large an object is; ErrNotFound where there is none.
	Stat(ctx context.Context, name string) (Object, error)
	// List calls each for the objects whose names begin with a prefix, in no order.
	List(ctx context.Context, prefix string, each func(Object) error) error
	// Any is the name of something in the place, which need not be an object; "" where there is nothing.
	Any(ctx context.Context) (string, error)
	// Delete removes an object, if it is there.
	Delete(ctx context.Context, name string) error
	// Clean removes what is left of Puts that were cut off. Nobody may Put meanwhile.
	Clean(ctx context.Context) error
	// String is the place as an operator knows it, without secrets.
	String() string
}

// maxName is how long a name may be.
const maxName = 200

// CheckName refuses what is no name of an object, so that nothing leaves the place by one.
func CheckName(name string) error {
	if len(name) == 0 || len(name) > maxName {
		return fmt.Errorf("%q is not the name of an object", name)
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || part[0] == '.' || strings.ContainsFunc(part, isForeign) {
			return fmt.Errorf("%q is not the name of an object", name)
		}
	}
	return nil
}

const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-_"

// ReadSmall reads an object of no more than limit bytes.
func ReadSmall(ctx context.Context, p Place, name string, limit int64) ([]byte, error) {
	r, err := p.Get(ctx, name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	b, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	if int64(len(b)) > limit {
		return nil, Faultf("%s has more than %d bytes", name, limit)
	}
	return b, nil
}

func isForeign(r rune) bool { return !strings.ContainsRune(letters, r) }
