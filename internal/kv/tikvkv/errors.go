package tikvkv

import (
	"context"
	"errors"
	"fmt"

	tikverr "github.com/tikv/client-go/v2/error"

	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// coded is an error that clients see under a code of its own.
type coded struct {
	error
	code mongoerr.Code
}

// Code is for mongoerr.From.
func (e *coded) Code() mongoerr.Code { return e.code }

func (e *coded) Unwrap() error { return e.error }

// unavailable says that the cluster cannot be reached. Nothing was changed; drivers try again.
func unavailable(err error) error {
	code := mongoerr.HostUnreachable
	if errors.Is(err, context.DeadlineExceeded) {
		code = mongoerr.NetworkTimeout
	}
	return &coded{fmt.Errorf("the TiKV cluster cannot be reached: %w", err), code}
}

var (
	// ErrLost is what ends an engine whose keyspace another server has taken over. Who waits for a commit tries it there.
	ErrLost error = &coded{errors.New("tikvkv: another server has taken over the keyspace"), mongoerr.HostUnreachable}
	// errLease is for who comes while the lease has run out and was not renewed, since the cluster did not answer.
	errLease = errors.New("the lease of the keyspace could not be renewed in time")
	// errStalled is for who comes while commits wait for the cluster.
	errStalled = errors.New("commits wait for it")
	// errTooOld is for who reads a view that the cluster keeps no longer.
	errTooOld = &coded{errors.New("the snapshot is too old: TiKV does not keep what was there then any more"), mongoerr.SnapshotTooOld}
	// errNoTables and errNoCheckpoints are for who has not asked for the engine's Capabilities.
	errNoTables      = errors.New("tikvkv: the engine takes over no tables")
	errNoCheckpoints = errors.New("tikvkv: the engine takes no checkpoints")
)

// keyTooLong is what MongoDB said before 4.2 of an entry of an index that was longer than its limit.
const keyTooLong = mongoerr.IndexKeyTooLong

// errLongKey refuses what has a key that is too long for TiKV: an entry of an index most often.
func errLongKey(size int) error {
	return &coded{fmt.Errorf("a key of %d bytes is longer than the %d that a key may have in TiKV", size, maxKeyBytes), keyTooLong}
}

// isPermanent says whether what TiKV's client says of a write stays so, however often it is tried.
func isPermanent(err error) bool {
	var key *tikverr.ErrKeyTooLarge
	var entry *tikverr.ErrEntryTooLarge
	var txn *tikverr.ErrTxnTooLarge
	return errors.As(err, &key) || errors.As(err, &entry) || errors.As(err, &txn)
}

// reading wraps an error of a read.
func reading(what string, err error) error {
	switch {
	case errors.Is(err, kv.ErrCorrupt):
		return err
	case isTooOld(err):
		return errTooOld
	}
	return unavailable(fmt.Errorf("%s: %w", what, err))
}

func isTooOld(err error) bool {
	var early *tikverr.ErrGCTooEarly
	return errors.As(err, &early)
}
