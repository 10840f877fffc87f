package tikvkv

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	tikverr "github.com/tikv/client-go/v2/error"
	tikvkeys "github.com/tikv/client-go/v2/kv"
	"github.com/tikv/client-go/v2/oracle"
	"github.com/tikv/client-go/v2/tikv"
	"github.com/tikv/client-go/v2/txnkv/transaction"

	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/kv"
)

// lease is what makes this process the only one that writes to a keyspace. It is a row that says who has the keyspace, and until when by PD's
// timestamps. Its holder renews it; who finds one that has run out may take the keyspace over. Then it writes all slots (see committer), and that
// the epoch of the holder before has ended.
//
// The row is read and written by whole transactions of two phases. Those get their commit's timestamp when their locks are there, so of two servers
// that find a lease that has run out the one that read later meets the other's lock, or the row, and the one that read earlier is in conflict. One
// phase (1PC) and async commit have the store choose the timestamp before anybody can see what is written. That is as good where a store has who
// reads meanwhile wait, as TiKV does; where one does not, two servers get the keyspace at once, each writes over what the other has, and what was
// acknowledged is lost. It is not worth a request a few times a minute to rely on that.
//
// Writes do not rely on time alone either: each is refused by TiKV itself when the epoch has ended in which it was begun (tryWrite).
//
// Nothing here goes by the machine's clock but how much time has passed since something, which its monotonic time tells. Its holder takes the lease to
// run out when so much has passed since a timestamp was asked for. PD's timestamps may say so before: their time stands still while PD is in trouble, and
// is ahead after that (pdTime). So who waits for the lease takes it when it has seen the same row for so long, or when the row has run out by more than
// PD's time can be wrong. Otherwise two servers would have the keyspace: the one before could write nothing, but read what is no longer so.
type lease struct {
	store *tikv.KVStore
	space keyspace
	clock clock.Clock
	log   *slog.Logger
	ctx   context.Context
	me    Holder
	term  time.Duration

	// commit is commitOnce, but in tests.
	commit func(*transaction.KVTxn) error

	mu struct {
		sync.Mutex // guards the rest
		row        leaseRow
		until      time.Duration // monotonic: nobody else can have the keyspace before
		lost       error
		changed    chan struct{} // closed when it is renewed or lost
		time       pdTime
	}
}

// Holder is who has a keyspace.
type Holder struct {
	ID      string `json:"id"`                // of the engine that has it
	Name    string `json:"name"`              // for people
	Address string `json:"address,omitempty"` // where other servers reach it
}

// leaseRow is the lease as it is stored.
type leaseRow struct {
	Holder  Holder `json:"holder"`
	Epoch   uint64 `json:"epoch"`   // how often the keyspace was taken over
	Expires int64  `json:"expires"` // milliseconds of PD's timestamps; 0: given back
	Term    int64  `json:"term"`    // milliseconds from when it was renewed last; 0: the default
}

func (r leaseRow) lasts() time.Duration {
	if r.Term == 0 { // by a version that did not say
		return defaultTerm
	}
	return time.Duration(r.Term) * time.Millisecond
}

const (
	// defaultTerm is how long a lease lasts, and renewals is how often it is renewed meanwhile.
	defaultTerm = 10 * time.Second
	renewals    = 4
	// marginShare is which part of it the holder takes it to end earlier.
	marginShare = 10
	// attemptTime and attemptTimePerMB bound one attempt to commit, so that the lease is looked at between attempts, and another store asked where one
	// does not answer. Of what takes two phases, since it is large, an attempt may last longer: it is in vain if it ends between them.
	attemptTime      = 5 * time.Second
	largeAttemptTime = 10 * time.Second
	attemptTimePerMB = time.Second
	// renewalShare is which part of its term one attempt to renew the lease may last, and retries is how often it is tried within it after a failure.
	renewalShare = 2
	retries      = 20
	// maxOnePCBytes is how much is committed in one phase, which makes one raft entry of all of it.
	maxOnePCBytes = 1 << 20
	minPause      = 20 * time.Millisecond
	maxPause      = time.Second
	maxTakes      = 20
	// endedEpochs is how many epochs are remembered that have ended: servers that think that they are in one before have been gone for too long to write.
	endedEpochs = 1 << 10
)

// HeldError says that another server has the keyspace.
type HeldError struct{ Keyspace, Holder string }

func (e *HeldError) Error() string {
	return fmt.Sprintf("the keyspace %q belongs to the server %s, which is running, and one server at a time works on a keyspace. "+
		"Stop that one, choose another --tikvKeyspace, or start this one without --replSet: then it hands clients on to the other", e.Keyspace, e.Holder)
}

// slotValue is what a slot holds: the number and the time of a group's last commit.
type slotValue struct {
	number uint64
	millis int64
}

func (v slotValue) encode() []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, v.number), uint64(v.millis))
}

func decodeSlot(stored []byte) (slotValue, error) {
	if len(stored) != 16 {
		return slotValue{}, kv.Damaged(fmt.Errorf("tikvkv: a slot has %d bytes, want 16", len(stored)))
	}
	return slotValue{binary.BigEndian.Uint64(stored), int64(binary.BigEndian.Uint64(stored[8:]))}, nil
}

// taken is what the server found that took the keyspace over.
type taken struct {
	last    slotValue // of all slots
	outside uint64    // the number in the slot behind those of groups
	ts      uint64    // a timestamp that has all that was committed before
}

// take waits until the keyspace is free, and takes it. With waiting it waits as long as that takes, and tells whom it waits for at each look;
// without, the error is a HeldError where the keyspace is not going to be free.
func (l *lease) take(name string, waiting func(Holder)) (taken, error) {
	var seen leaseRow
	var since time.Duration // when that row was seen first
	began := clock.Monotonic(l.clock)
	for try := 1; ; try++ {
		got, other, err := l.tryTake(seen, since)
		if err == nil && other != nil && *other != seen {
			since = clock.Monotonic(l.clock)
		}
		switch {
		case err == nil && other == nil:
			return got, nil
		case err == nil && waiting != nil:
			seen = *other
			waiting(other.Holder)
		case err == nil && seen.Holder.ID != "" && *other != seen: // it was renewed
			return taken{}, &HeldError{name, other.Holder.Name}
		case err == nil && clock.Monotonic(l.clock)-began > 3*l.term:
			return taken{}, &HeldError{name, other.Holder.Name}
		case err == nil:
			if seen.Holder.ID == "" {
				l.log.Info("Waiting for the lease of the keyspace to be given back or to run out", "keyspace", name, "holder", other.Holder.Name)
			}
			seen = *other
		case waiting != nil && seen.Holder.ID != "" && !errors.Is(err, kv.ErrCorrupt) && !errors.Is(err, errFormat): // the cluster comes back, or not
		case !isConflict(err) && try >= maxTakes, errors.Is(err, kv.ErrCorrupt), errors.Is(err, errFormat):
			return taken{}, err
		}
		if err := clock.Wait(l.ctx, l.clock, l.term/20); err != nil {
			return taken{}, err
		}
	}
}

// tryTake takes the keyspace; other is who has it. The row seen was there at a look before, for the first time then.
func (l *lease) tryTake(seen leaseRow, since time.Duration) (got taken, other *leaseRow, err error) {
	t, begin, err := l.begin()
	if err != nil {
		return got, nil, unavailable(err)
	}
	defer rollback(t)
	now := begin.physical
	row, err := l.readRow(t)
	if err != nil {
		return got, nil, err
	}
	waited := row == seen && begin.asked-since >= row.lasts()
	if row.Holder.ID != l.me.ID && row.Expires > now-maxStandstill.Milliseconds() && !waited {
		return got, &row, nil
	}
	if err := l.checkFormat(t); err != nil {
		return got, nil, err
	}
	for n := range slots + 1 {
		value, err := l.readSlot(t, n)
		switch {
		case err != nil:
			return got, nil, err
		case n == slots:
			got.outside = value.number
		case value.number > got.last.number:
			got.last = value
		}
		if err := t.Set(l.space.slot(n), value.encode()); err != nil {
			return got, nil, err
		}
	}
	next := leaseRow{Holder: l.me, Epoch: row.Epoch + 1, Expires: now + l.term.Milliseconds(), Term: l.term.Milliseconds()}
	if err := errors.Join(l.setRow(t, next), l.end(t, row.Epoch)); err != nil {
		return got, nil, err
	}
	if err := l.commitRow(t); err != nil {
		return got, nil, unavailable(err)
	}
	got.ts = transaction.TxnProbe{KVTxn: t}.GetCommitTS()
	l.mu.Lock()
	l.mu.time.begin(begin, l.clock.Now().Add(begin.came-clock.Monotonic(l.clock)), got.last.millis)
	l.mu.Unlock()
	l.note(next, begin.asked)
	return got, nil, nil
}

// begin begins a transaction, and tells what its timestamp does.
func (l *lease) begin() (*transaction.KVTxn, told, error) {
	asked := clock.Monotonic(l.clock)
	t, err := l.store.Begin()
	if err != nil {
		return nil, told{}, err
	}
	t.GetSnapshot().SetKVReadTimeout(min(answerTime, l.term/renewals))
	return t, told{asked, clock.Monotonic(l.clock), oracle.ExtractPhysical(t.StartTS())}, nil
}

// end has nothing be written any more that was begun in an epoch. What was said of one that is long past is let go of.
func (l *lease) end(t *transaction.KVTxn, epoch uint64) error {
	if epoch >= endedEpochs {
		if err := t.Delete(l.space.ended(epoch - endedEpochs)); err != nil {
			return err
		}
	}
	return t.Set(l.space.ended(epoch), []byte{1})
}

// within has a transaction fail if the epoch has ended.
func (l *lease) within(t *transaction.KVTxn, epoch uint64) error {
	key, buffer := l.space.ended(epoch), t.GetMemBuffer()
	if err := buffer.SetWithFlags(key, []byte{1}, tikvkeys.SetPresumeKeyNotExists); err != nil {
		return err
	}
	return buffer.Delete(key) // so that the key is looked for, and not written
}

var errFormat = errors.New("tikvkv: the keyspace has another format")

func (l *lease) checkFormat(t *transaction.KVTxn) error {
	entry, err := t.Get(l.ctx, l.space.format())
	switch {
	case tikverr.IsErrNotFound(err):
		return t.Set(l.space.format(), []byte{format})
	case err != nil:
		return unavailable(err)
	case len(entry.Value) == 1 && entry.Value[0] == firstFormat:
		l.log.Info("The keyspace has the format before this one, which servers before this one cannot read from now on", "format", format)
		return t.Set(l.space.format(), []byte{format})
	case len(entry.Value) != 1 || entry.Value[0] != format:
		return fmt.Errorf("%w: %x, and this version knows %d", errFormat, entry.Value, format)
	}
	return nil
}

func (l *lease) readSlot(t *transaction.KVTxn, n int) (slotValue, error) {
	entry, err := t.Get(l.ctx, l.space.slot(n))
	switch {
	case tikverr.IsErrNotFound(err):
		return slotValue{}, nil
	case err != nil:
		return slotValue{}, unavailable(err)
	}
	return decodeSlot(entry.Value)
}

func (l *lease) readRow(t *transaction.KVTxn) (row leaseRow, err error) {
	entry, err := t.Get(l.ctx, l.space.lease())
	switch {
	case tikverr.IsErrNotFound(err):
		return row, nil
	case err != nil:
		return row, unavailable(err)
	}
	if err := json.Unmarshal(entry.Value, &row); err != nil {
		return row, kv.Damaged(fmt.Errorf("tikvkv: the lease of the keyspace: %w", err))
	}
	return row, nil
}

func (l *lease) setRow(t *transaction.KVTxn, row leaseRow) error {
	value, err := json.Marshal(row)
	if err != nil {
		return err
	}
	return t.Set(l.space.lease(), value)
}

// commitOnce commits within the time of one attempt.
func (l *lease) commitOnce(t *transaction.KVTxn) error {
	t.SetEnable1PC(t.Size() <= maxOnePCBytes)
	t.SetEnableAsyncCommit(true)
	t.SetCausalConsistency(true) // what has to come later begins later: the group after, or who takes over
	return l.commitRow(t)
}

// commitRow is commitOnce for what the lease's row is in: in two phases.
func (l *lease) commitRow(t *transaction.KVTxn) error {
	d := attemptTime
	if t.Size() > maxOnePCBytes {
		d = largeAttemptTime
	}
	return l.commitFor(t, d+time.Duration(t.Size()>>20)*attemptTimePerMB)
}

// commitFor ends an attempt when its time is over.
func (l *lease) commitFor(t *transaction.KVTxn, d time.Duration) error {
	ctx, cancel := withLimit(l.ctx, l.clock, d)
	defer cancel()
	return t.Commit(ctx)
}

func rollback(t *transaction.KVTxn) {
	if t.Valid() {
		_ = t.Rollback() // which tells nobody but the client
	}
}

func isConflict(err error) bool { return tikverr.IsErrWriteConflict(err) || tikverr.IsErrKeyExist(err) }

// note notes that the lease is held by a row that was written with a timestamp that was asked for then.
func (l *lease) note(row leaseRow, asked time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.row = row
	l.mu.until = asked + l.term - l.term/marginShare
	close(l.mu.changed)
	l.mu.changed = make(chan struct{})
}

// lose notes that another server has the keyspace.
func (l *lease) lose(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.lost == nil {
		l.mu.lost = err
		close(l.mu.changed)
		l.mu.changed = make(chan struct{})
	}
}

// isLost is what is known of another server that has the keyspace; nil: nothing.
func (l *lease) isLost() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.lost
}

// held says whether nobody else can have the keyspace.
func (l *lease) held() error {
	now := clock.Monotonic(l.clock)
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.mu.lost != nil:
		return l.mu.lost
	case now >= l.mu.until:
		return errLease
	}
	return nil
}

// renew renews the lease. A timestamp that has all that is committed comes back.
func (l *lease) renew() (ts uint64, err error) {
	t, begin, err := l.begin()
	if err != nil {
		return 0, err
	}
	defer rollback(t)
	row, err := l.readRow(t)
	if err != nil {
		return 0, err
	}
	if row.Holder.ID != l.me.ID {
		l.lose(fmt.Errorf("%w: %s", ErrLost, row.Holder.Name))
		return 0, ErrLost
	}
	if row.Expires == 0 { // given back, by Close
		return 0, kv.ErrClosed
	}
	row.Expires = begin.physical + l.term.Milliseconds()
	if err := l.setRow(t, row); err != nil {
		return 0, err
	}
	if err := l.commitFor(t, l.term/renewalShare); err != nil {
		return 0, err
	}
	l.mu.Lock()
	l.mu.time.tell(begin)
	l.mu.Unlock()
	l.note(row, begin.asked)
	return t.StartTS(), nil
}

// giveBack ends the lease, so that nobody has to wait for its end.
func (l *lease) giveBack() error {
	t, err := l.store.Begin()
	if err != nil {
		return err
	}
	defer rollback(t)
	row, err := l.readRow(t)
	if err != nil || row.Holder.ID != l.me.ID {
		return err
	}
	row.Expires = 0
	if err := l.setRow(t, row); err != nil {
		return err
	}
	return l.commitRow(t)
}

// write commits what fill puts into a transaction, with a value in a slot that nothing else has put there. It tries until that is done, and
// returns a timestamp that has it; or until the keyspace is lost. tell is told of each attempt that failed.
func (l *lease) write(slot int, value slotValue, fill func(*transaction.KVTxn) error, tell func(tried time.Duration, why error)) (ts uint64, err error) {
	began, pause := clock.Monotonic(l.clock), minPause
	for again := false; ; again = true {
		if ts, err = l.tryWrite(slot, value, fill, again); err == nil {
			return ts, nil
		}
		lost := l.isLost()
		switch {
		case lost != nil:
			return 0, lost
		case l.ctx.Err() != nil:
			return 0, kv.ErrClosed
		case isPermanent(err): // which commits are looked at for before; to try again would be for ever
			return 0, err
		}
		tell(clock.Monotonic(l.clock)-began, err)
		if err := clock.Wait(l.ctx, l.clock, pause); err != nil {
			return 0, kv.ErrClosed
		}
		pause = min(2*pause, maxPause)
	}
}

// beginWithin is a transaction that began within the lease, and the epoch that it is of.
func (l *lease) beginWithin() (t *transaction.KVTxn, epoch uint64, err error) {
	if err := l.held(); err != nil {
		return nil, 0, err
	}
	if t, err = l.store.Begin(); err != nil {
		return nil, 0, err
	}
	l.mu.Lock()
	row := l.mu.row
	l.mu.Unlock()
	if oracle.ExtractPhysical(t.StartTS()) >= row.Expires {
		rollback(t)
		return nil, 0, errLease
	}
	return t, row.Epoch, nil
}

func (l *lease) tryWrite(slot int, value slotValue, fill func(*transaction.KVTxn) error, again bool) (ts uint64, err error) {
	t, epoch, err := l.beginWithin()
	if err != nil {
		return 0, err
	}
	defer rollback(t)
	if again { // the attempt before may have been committed
		stored, err := l.readSlot(t, slot)
		switch {
		case err != nil:
			return 0, err
		case stored == value:
			return t.StartTS(), nil
		}
	}
	if err := errors.Join(t.Set(l.space.slot(slot), value.encode()), fill(t)); err != nil {
		return 0, err
	}
	return l.commitWithin(t, epoch)
}

// commitWithin commits what was begun in an epoch, unless that has ended.
func (l *lease) commitWithin(t *transaction.KVTxn, epoch uint64) (ts uint64, err error) {
	if err := l.within(t, epoch); err != nil {
		return 0, err
	}
	if err := l.commit(t); err != nil {
		if tikverr.IsErrKeyExist(err) { // nothing else is looked for
			l.lose(fmt.Errorf("%w: epoch %d has ended", ErrLost, epoch))
		}
		return 0, err
	}
	return transaction.TxnProbe{KVTxn: t}.GetCommitTS(), nil
}

// now is the time by PD's timestamps, as far as those that the lease was renewed with tell.
func (l *lease) now() time.Time {
	passed := clock.Monotonic(l.clock)
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.time.at(passed)
}

// epoch is how often the keyspace was taken over.
func (l *lease) epoch() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.row.Epoch
}
