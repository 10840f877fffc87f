package loosen

import (
	"context"
	"log/slog"
	"math"
	"slices"
	"strconv"

	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/serverlog"
	"github.com/ebbdb/ebb/internal/storage"
	"github.com/ebbdb/ebb/internal/storage/indexplan"
	"github.com/ebbdb/ebb/internal/storage/meaning"
	"github.com/ebbdb/ebb/internal/storage/sweeper"
	"github.com/ebbdb/ebb/internal/storage/ttlchange"
	"github.com/ebbdb/ebb/internal/ttl/policy"
)

// Loosener does it in one store.
type Loosener struct {
	store   *storage.Store
	sweeper *sweeper.Sweeper
	log     *slog.Logger
}

// New is a Loosener of a store, which deletes by way of its Sweeper.
func New(store *storage.Store, sweeper *sweeper.Sweeper) *Loosener {
	return &Loosener{store: store, sweeper: sweeper, log: store.Options().Logger}
}

// Change is a change of a collection's rules under way, as seen by those that hide. It is made anew for each try of a
// command (ToBe), but for what was done. Close it.
type Change struct {
	*Loosener
	how   ttlchange.OnHidden
	done  ttlchange.Loosened
	c     storage.Collection
	after policy.Rules
	all   bool // whether every rule hides, after the change
	// rules are those that hide and that after does not have any more, or not as strictly.
	rules []*policy.Rule
	// since is the earliest deadline of what is stored, by each of rules whose documents are kept.
	since []int64
	// before sees what was hidden, where it is kept; nil elsewhere.
	before *storage.View
	// goOn ends that time stands still for other members; nil where it does not.
	goOn func()
}

// Begin is the change of a command that says what to do with what is hidden.
func (l *Loosener) Begin(how ttlchange.OnHidden) *Change { return &Change{Loosener: l, how: how} }

// How is what the command says.
func (l *Change) How() ttlchange.OnHidden { return l.how }

// Renews are the rules that get a grace though they were not tightened, because what they hid is kept: it would be deleted at once.
func (l *Change) Renews(was, rule *policy.Rule) bool {
	return l.how.Keep && was.IsLoosened(l.after, l.all)
}

// ToBe makes l the change from c, whose lock is held exclusively, to next.
func (l *Change) ToBe(c storage.Collection, next *catalog.Collection) {
	l.all = l.store.Options().HideExpired()
	l.c, l.after, l.since = c, next.ExpiryRules(), nil
	l.rules = ttlchange.Shown(c.Rules(), l.after, l.all)
}

// After has the rules be other ones than ToBe knew: indexes that were built meanwhile may hide what others do not any more.
func (l *Change) After(next *catalog.Collection) { l.after = next.ExpiryRules() }

// Deletes says whether what is hidden is deleted first.
func (l *Change) Deletes() bool {
	return !l.how.Keep && (l.how.Force || l.c.Held() == "" || l.how.Replayed && l.c.Options.ExpirationEvents.SumUp())
}

// Ahead deletes most of what Settle would delete, beside writers. same is as DeleteDueAhead has it.
func (l *Change) Ahead(ctx context.Context, next *catalog.Collection) (same bool, err error) {
	same = true
	if l.Deletes() {
		var n int64
		n, same, err = l.sweeper.DeleteDueAhead(ctx, l.c, l.rules)
		l.done.Deleted += n
	}
	if same && err == nil && !l.how.Keep && !l.how.Replayed && len(indexplan.Reshaped(l.c.Collection, next)) > 0 {
		_, same, err = l.sweeper.DeleteDueAhead(ctx, l.c, l.Unspared(l.c))
	}
	return same, err
}

// Beside deletes beside writers most of what Settle would delete, for one who holds no lock.
func (l *Change) Beside(ctx context.Context) error {
	if !l.Deletes() {
		return nil
	}
	return l.expire(ctx, sweeper.BesideWriters, math.MinInt64)
}

// ClearBeside deletes beside writers what is hidden and not spared, so that it is in the way of no index. What Settle would delete
// counts as deleted for that.
func (l *Change) ClearBeside(ctx context.Context) error {
	now := l.store.ExpiryTime()
	for _, rule := range l.Unspared(l.c) {
		n, err := l.sweeper.DeleteDue(ctx, l.c, rule, now, sweeper.BesideWriters)
		if err != nil {
			return err
		}
		if slices.Contains(l.rules, rule) {
			l.done.Deleted += n
		}
	}
	return nil
}

// Unspared are the hiding rules by which whoever builds an index deletes what has expired: it need not be looked at then.
func (l *Loosener) Unspared(c storage.Collection) (rules []*policy.Rule) {
	unspared, _ := l.Hiding(c)
	return unspared
}

// Hiding are the rules that hide. What is hidden by those that are spared is left alone by who needs it away only because it may be
// in the way: expiry is held, or it is in its grace.
func (l *Loosener) Hiding(c storage.Collection) (unspared, spared []*policy.Rule) {
	all, held, rules := l.store.Options().HideExpired(), c.Held() != "", c.Rules()
	for i := range rules.All() {
		switch rule := &rules.All()[i]; {
		case !rule.Hides(all):
		case held || c.InGrace(rule):
			spared = append(spared, rule)
		default:
			unspared = append(unspared, rule)
		}
	}
	return unspared, spared
}

// Settle deletes what is still hidden, or refuses, or takes note of it; then the change is published, or undone.
//
// Readers go on under the old rules until it is published, and what expires meanwhile would be hidden to them and seen again
// after. So at the end time stands still for them, and what may have become hidden until then is deleted too. That holds for readers of other
// members as well, who have the old rules until they apply the change: nobody tells them of a later time before.
func (l *Change) Settle(ctx context.Context) (err error) {
	if len(l.rules) == 0 {
		return nil
	}
	if l.how.Keep {
		return l.keep(ctx)
	}
	if !l.Deletes() {
		upTo := l.standStill()
		l.c.Freeze()
		if l.how.Replayed {
			return nil
		}
		return l.refuse(ctx, upTo)
	}
	if err := l.expire(ctx, sweeper.UnderLock, math.MinInt64); err != nil {
		return err
	}
	upTo := l.standStill()
	for range maxStandings {
		l.c.Freeze()
		if err := l.expire(ctx, sweeper.UnderLock, upTo); err != nil {
			return err
		}
		last := upTo
		if upTo = l.standStill(); upTo == last {
			break
		}
	}
	return nil
}

// maxStandings is how often is deleted again what has become hidden elsewhere meanwhile, where that has taken longer than time stands still.
const maxStandings = 10

// standStill has time stand still for other members until the change is over, and returns up to when what has expired may be hidden there. It is as late as
// before where time has stood still since.
func (l *Change) standStill() (upTo int64) {
	before := l.goOn
	upTo, l.goOn = l.store.StandStillForOthers()
	if before != nil {
		before()
	}
	return upTo
}

func (l *Change) letGoOn() {
	if l.goOn != nil {
		l.goOn()
		l.goOn = nil
	}
}

// keep has what is hidden stay, and notes since when it has expired. A replay first deletes what was not there any more when the change was made.
func (l *Change) keep(ctx context.Context) (err error) {
	if l.how.Replayed && l.how.Since != 0 {
		before := min(max(l.how.Since, math.MinInt64+1)-1, l.store.ExpiryTime())
		for _, rule := range l.rules {
			if _, err := l.sweeper.DeleteDue(ctx, l.c, rule, before, sweeper.UnderLock); err != nil {
				return err
			}
		}
	}
	if l.before, err = l.store.View(context.WithoutCancel(ctx)); err != nil { // it is read when nothing can be undone any more
		return err
	}
	r := l.c.Read(l.before)
	l.since = make([]int64, len(l.rules))
	for i, rule := range l.rules {
		first, ok, err := r.Dates().Next(rule)
		if err != nil {
			return err
		}
		if l.since[i] = r.HidesAt() + 1; ok {
			l.since[i] = min(first, l.since[i])
		}
	}
	return nil
}

// Kept says what becomes visible again that an index hides, or for nil the collection's own TTL; nil for nothing.
func (l *Change) Kept(d *index.Definition) *meaning.Kept {
	for i := range l.since {
		if of := l.rules[i].Index; of == nil && d == nil || of != nil && d != nil && of.Name == d.Name {
			return &meaning.Kept{Since: l.since[i]}
		}
	}
	return nil
}

// expire deletes what has expired by now, or by atLeast if that is later.
func (l *Change) expire(ctx context.Context, how sweeper.Deletion, atLeast int64) error {
	now := max(l.store.ExpiryTime(), atLeast)
	for _, rule := range l.rules {
		n, err := l.sweeper.DeleteDue(ctx, l.c, rule, now, how)
		l.done.Deleted += n
		if err != nil {
			return err
		}
	}
	return nil
}

// maxRefused is how far is counted what a change that is refused would have deleted.
const maxRefused = 10_000

// refuse fails when anything is hidden that would be seen again, or may be hidden elsewhere up to a time.
func (l *Change) refuse(ctx context.Context, upTo int64) error {
	v, err := l.store.View(ctx)
	if err != nil {
		return err
	}
	defer v.Close()
	r, n := l.c.Read(v), int64(0)
	for _, rule := range l.rules {
		due, err := r.Dates().Count(rule, max(r.HidesAt(), upTo), maxRefused-n)
		if err != nil {
			return err
		}
		if n += due; n >= maxRefused {
			break
		}
	}
	if n == 0 {
		return nil
	}
	return refusedWhileHeld(l.c, l.c.Held(), n)
}

func refusedWhileHeld(c storage.Collection, held string, n int64) error {
	many := strconv.FormatInt(n, 10)
	if n >= maxRefused {
		many += " or more"
	}
	return mongoerr.New(mongoerr.IllegalOperation, "expiry is held (%s), and hidden documents of %s that have expired (%s) would have to be deleted "+
		"so that they do not come back: keepExpired: true makes them visible again, force: true deletes them", held, c.NS, many)
}

// published counts what the change has made visible, when it has been made and no lock is held any more. Nothing of it can be
// undone: where counting fails, what was counted is told.
func (l *Change) published() {
	if l.before == nil {
		return
	}
	h, err := l.c.Read(l.before).BeforeChange().Hidden(l.rules, l.after, l.all)
	if l.done.Kept = h.Shown; err != nil {
		l.log.Warn("Counting what became visible again failed", "namespace", l.c.NS.String(), "error", serverlog.Client(err.Error()))
	}
}

// Done is what became of hidden documents so far.
func (l *Change) Done() ttlchange.Loosened { return l.done }

// End is what the command says that made the change, or failed with err.
func (l *Change) End(err error) (ttlchange.Loosened, error) {
	l.letGoOn()
	if err == nil {
		l.published()
	}
	l.tell()
	return l.done, err
}

// Close gives back what l holds.
func (l *Change) Close() {
	l.letGoOn()
	if l.before != nil {
		_ = l.before.Close()
		l.before = nil
	}
}

// tell logs what became of hidden documents, if there were any.
func (l *Change) tell() {
	if n := l.done.Deleted; n > 0 {
		l.log.Info("Deleted what was hidden before a TTL hides it no longer", "namespace", l.c.NS.String(), "numDeleted", n)
	}
	if n := l.done.Kept; n > 0 {
		l.log.Info("Made visible again what had expired and was hidden", "namespace", l.c.NS.String(), "numKept", n)
	}
}
