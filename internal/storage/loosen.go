package storage

import (
	"context"
	"strconv"

	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/storage/indexplan"
	"github.com/ebbdb/ebb/internal/storage/ttlchange"
	"github.com/ebbdb/ebb/internal/ttl/policy"
)

// OnHidden is what a command says of documents that are hidden, because they have expired by a rule that hides, and that would be
// seen again once it has changed that rule. What a rule does not hide everybody still sees: it stays in any case.
type OnHidden struct {
	// Keep makes them visible again; without it they are deleted first. While expiry is held they are not, unless Force says
	// so: then a change that would make any visible is refused. So is an index that hidden ones are in the way of; with Keep
	// those count as any others.
	Keep, Force bool
}

// Loosened is what became of them.
type Loosened struct {
	// Deleted is how many the command deleted, Kept how many became visible again.
	Deleted, Kept int64
}

// held is why what has expired of the collection is kept on purpose; "" when it is not.
func (s *Store) held(c *collection) string {
	if held := s.options.Held(); held != "" || !c.Options.TTLPaused {
		return held
	}
	return Paused
}

// Paused is why what has expired of a collection is kept whose ttlPaused is true.
const Paused = "the collection's ttlPaused is true"

// renews are the rules that get a grace though they were not tightened, because what they hid is kept: it would be deleted at once.
func (l *loosening) renews(was, rule *policy.Rule) bool {
	return l.how.Keep && was.IsLoosened(l.after, l.all)
}

// spares says whether what is hidden by the rule is left alone by those who need it away only because it may be in their way.
func (s *Store) spares(c *collection, rule *policy.Rule) bool {
	return s.held(c) != "" || s.inGrace(rule, s.Now())
}

// loosening is a change of a collection's rules under way, as seen by those that hide. It is made anew for each try of a
// command, but for what was done.
type loosening struct {
	store *Store
	how   OnHidden
	done  Loosened
	c     *collection
	after policy.Rules
	all   bool // whether every rule hides, after the change
	// rules are those that hide and that after does not have any more, or not as strictly.
	rules []*policy.Rule
	// before sees what was hidden, where it is kept; nil elsewhere.
	before *View
}

// toBe makes l the change from c, whose lock is held exclusively, to next.
func (l *loosening) toBe(c *collection, next *catalog.Collection) {
	l.all = l.store.options.HideExpired()
	l.c, l.after = c, next.ExpiryRules()
	l.rules = ttlchange.Shown(c.rules, l.after, l.all)
}

// deletes says whether what is hidden is deleted first.
func (l *loosening) deletes() bool {
	return !l.how.Keep && (l.how.Force || l.store.held(l.c) == "")
}

// ahead deletes most of what settle would delete, beside writers. same is as deleteDueAhead has it.
func (l *loosening) ahead(ctx context.Context, next *catalog.Collection) (same bool, err error) {
	same = true
	if l.deletes() {
		var n int64
		n, same, err = l.store.deleteDueAhead(ctx, l.c, l.rules)
		l.done.Deleted += n
	}
	if same && err == nil && !l.how.Keep && len(indexplan.Reshaped(l.c.Collection, next)) > 0 {
		_, same, err = l.store.deleteDueAhead(ctx, l.c, l.store.unspared(l.c))
	}
	return same, err
}

// unspared are the hiding rules by which whoever builds an index deletes what has expired: it need not be looked at then.
func (s *Store) unspared(c *collection) (rules []*policy.Rule) {
	all := s.options.HideExpired()
	for i := range c.rules.All() {
		if rule := &c.rules.All()[i]; rule.Hides(all) && !s.spares(c, rule) {
			rules = append(rules, rule)
		}
	}
	return rules
}

// settle deletes what is still hidden, or refuses, or takes note of it; then the change is published, or undone.
//
// Readers go on under the old rules until it is published, and what expires meanwhile would be hidden to them and seen again
// after. So at the end time stands still for them, and what may have become hidden until then is deleted too.
func (l *loosening) settle(ctx context.Context) (err error) {
	if len(l.rules) == 0 {
		return nil
	}
	if l.how.Keep {
		l.before, err = l.store.View(ctx)
		return err
	}
	if !l.deletes() {
		l.store.expiryClock.Freeze(&l.c.frozen)
		return l.refuse(ctx)
	}
	if err := l.expire(ctx); err != nil {
		return err
	}
	l.store.expiryClock.Freeze(&l.c.frozen)
	return l.expire(ctx)
}

func (l *loosening) expire(ctx context.Context) error {
	now := l.store.expiryClock.Time()
	for _, rule := range l.rules {
		n, err := l.store.deleteDue(ctx, l.c, rule, now, underLock)
		l.done.Deleted += n
		if err != nil {
			return err
		}
	}
	return nil
}

// maxRefused is how far is counted what a change that is refused would have deleted.
const maxRefused = 10_000

// refuse fails when anything is hidden that would be seen again.
func (l *loosening) refuse(ctx context.Context) error {
	v, err := l.store.View(ctx)
	if err != nil {
		return err
	}
	defer v.Close()
	r, n := v.read(l.c), int64(0)
	for _, rule := range l.rules {
		due, err := r.Dates().Count(rule, r.at, maxRefused-n)
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
	return refusedWhileHeld(l.c, l.store.held(l.c), n)
}

func refusedWhileHeld(c *collection, held string, n int64) error {
	many := strconv.FormatInt(n, 10)
	if n >= maxRefused {
		many += " or more"
	}
	return mongoerr.New(mongoerr.IllegalOperation, "expiry is held (%s), and hidden documents of %s that have expired (%s) would have to be deleted "+
		"so that they do not come back: keepExpired: true makes them visible again, force: true deletes them", held, c.NS, many)
}

// published counts what the change has made visible, when it has been made and no lock is held any more. Nothing of it can be
// undone: where counting fails, what was counted is told.
func (l *loosening) published() {
	if l.before == nil {
		return
	}
	l.before.ctx = context.WithoutCancel(l.before.ctx)
	h, err := l.before.read(l.c).beforeChange().Hidden(l.rules, l.after, l.all)
	if l.done.Kept = h.Shown; err != nil {
		l.store.options.Logger.Warn("Counting what became visible again failed", "namespace", l.c.NS.String(), "error", err.Error())
	}
}

// end is what the command says that made the change, or failed with err.
func (l *loosening) end(err error) (Loosened, error) {
	if err == nil {
		l.published()
	}
	l.tell()
	return l.done, err
}

// close gives back what l holds.
func (l *loosening) close() {
	if l.before != nil {
		_ = l.before.Close()
		l.before = nil
	}
}

// tell logs what became of hidden documents, if there were any.
func (l *loosening) tell() {
	log := l.store.options.Logger
	if n := l.done.Deleted; n > 0 {
		log.Info("Deleted what was hidden before a TTL hides it no longer", "namespace", l.c.NS.String(), "numDeleted", n)
	}
	if n := l.done.Kept; n > 0 {
		log.Info("Made visible again what had expired and was hidden", "namespace", l.c.NS.String(), "numKept", n)
	}
}

// beforeChange is the collection before its TTLs change.
func (r *Reader) beforeChange() *ttlchange.Collection {
	return &ttlchange.Collection{Dates: r.Dates(), Now: r.view.now, HiddenAt: r.at, All: r.view.hiding.All,
		Count: r.Count, Each: r.each, Stored: r.Unhidden().GetMany}
}

// each calls f with each visible record.
func (r *Reader) each(f func(Record) error) error {
	c, err := r.Scan(RecordScan{})
	if err != nil {
		return err
	}
	defer c.Close()
	for c.Next() {
		if err := f(c.Record()); err != nil {
			return err
		}
	}
	return c.Err()
}
