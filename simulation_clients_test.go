package ebb

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/peer"
	"github.com/ebbdb/ebb/internal/register"
)

const (
	simAccounts  = 5
	simMoney     = 100
	simRegisters = 4
	// simRegisterCalls is for how many calls a register is in use: to find an order of many takes long.
	simRegisterCalls = 60
	simThink         = 60 * time.Millisecond
	// simPatience is how long a client tries to get something done, and simCall how long it waits for one answer.
	simPatience = 20 * time.Second
	simCall     = 5 * time.Second
	simLimit    = 20 * time.Second // of porcupine, in real time
)

// simClient speaks with the members as a driver does: it finds the primary, sends again what was not answered, and hands back the times that it was told.
type simClient struct {
	s           *simulation
	name        string
	number      int
	random      *rand.Rand
	conns       [simMost]*peer.Conn
	lsid        bson.Doc
	txns        int64
	guess       int
	clusterTime bson.Doc
	operation   bson.Value // the latest operationTime of all replies
	told        int64      // the time that the last reply tells
	deaf        bool       // it hands nothing back: a fault
}

func (s *simulation) newClient(name string, number uint64) *simClient {
	c := &simClient{s: s, name: name, number: int(number), random: rand.New(rand.NewPCG(s.seed, 1000+number))}
	var id [16]byte
	id[0], id[15] = byte(number), 1
	c.lsid = bson.Build().Binary("id", 4, id[:]).Doc()
	return c
}

func (s *simulation) newClients() {
	for i := range uint64(2) {
		s.clients = append(s.clients, &simRegistrar{simClient: s.newClient(fmt.Sprint("registers ", i), i)})
	}
	s.clients = append(s.clients, &simTeller{simClient: s.newClient("money", 10)}, &simTeller{simClient: s.newClient("more money", 11)},
		&simLogger{simClient: s.newClient("log", 20)}, &simWatcher{simClient: s.newClient("expiry", 30)}, &simDefiner{simClient: s.newClient("definitions", 40)},
		&simCounter{simClient: s.newClient("counters", 50)}, &simKeys{simClient: s.newClient("keys", 60)}, &simFollower{simClient: s.newClient("stream", 70), begin: s.admin.operation})
}

func (s *simulation) closeClients() {
	all := []*simClient{s.admin}
	for _, w := range s.clients {
		all = append(all, w.(interface{ client() *simClient }).client())
	}
	for _, c := range all {
		if c != nil {
			for place := range c.conns {
				c.hangUp(place)
			}
		}
	}
}

func (c *simClient) client() *simClient { return c }

func (c *simClient) hangUp(place int) {
	if c.conns[place] != nil {
		_ = c.conns[place].Close()
		c.conns[place] = nil
	}
}

// errLost is the error of a command that was not answered: nobody knows whether it was done.
var errLost = errors.New("not answered")

// call runs a command at a member, once.
func (c *simClient) call(ctx context.Context, place int, db string, body bson.Doc) (bson.Doc, error) {
	ctx, cancel := clock.WithTimeout(ctx, clock.Wall(), simCall)
	defer cancel()
	if c.conns[place] == nil {
		conn, err := peer.Dial(ctx, c.s.members[place].host(), peer.Options{Codec: c.s.codec, Dial: c.s.network.dialer(-1)})
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errLost, err)
		}
		c.conns[place] = conn
	}
	b := bson.Build().Fields(body).String("$db", db).Object("$readPreference").String("mode", "secondaryPreferred").End()
	known := c.told
	if c.clusterTime != nil && !c.deaf {
		b.Document("$clusterTime", c.clusterTime)
	} else {
		known = 0
	}
	reply, err := c.conns[place].Call(ctx, b.Doc())
	var said *mongoerr.Error
	if errors.As(err, &said) {
		return nil, err
	}
	if err != nil {
		c.hangUp(place)
		return nil, fmt.Errorf("%w: %w", errLost, err)
	}
	return reply, errors.Join(c.hear(place, reply, known), writeError(reply))
}

// hear takes note of the times of a reply. A member's time is never ahead of what the set's has been, nor behind what the client has told it.
func (c *simClient) hear(place int, reply bson.Doc, known int64) error {
	v := reply.Lookup("$clusterTime")
	if v.Type != bson.TypeObject {
		return nil
	}
	told := v.Doc().Lookup("signature").Doc().Lookup("keyId").Int64()
	if latest := max(c.s.time.Load(), known); told > latest {
		c.s.fail("%s: member %d says that it is %d, and the primary's time was %d at most", c.name, place, told, latest)
	}
	if c.clusterTime == nil || bson.Compare(v.Doc().Lookup("clusterTime"), c.clusterTime.Lookup("clusterTime")) > 0 {
		c.clusterTime = v.Doc().Clone()
	}
	if at := reply.Lookup("operationTime"); c.operation.Type != bson.TypeTimestamp || bson.Compare(at, c.operation) > 0 {
		c.operation = at.Clone()
	}
	c.told = told
	return nil
}

// writeError is what a reply says of what could not be written.
func writeError(reply bson.Doc) error {
	if list := reply.Lookup("writeErrors"); list.Type == bson.TypeArray {
		e := list.Doc().Index(0).Doc()
		return mongoerr.New(mongoerr.Code(e.Lookup("code").TruncInt64()), "%s", e.Lookup("errmsg").Str())
	}
	if e := reply.Lookup("writeConcernError"); e.Type == bson.TypeObject {
		return mongoerr.New(mongoerr.Code(e.Doc().Lookup("code").TruncInt64()), "%s", e.Doc().Lookup("errmsg").Str())
	}
	return nil
}

func codeOf(err error) mongoerr.Code {
	var e *mongoerr.Error
	if errors.As(err, &e) {
		return e.Code
	}
	return 0
}

// mayBeDone says whether a write is tried again after an error, by drivers too; it may have been done, or not.
func mayBeDone(err error) bool {
	return errors.Is(err, errLost) || slices.Contains([]mongoerr.Code{mongoerr.InterruptedAtShutdown, mongoerr.InterruptedDueToReplStateChange, mongoerr.NotWritablePrimary,
		mongoerr.PrimarySteppedDown, mongoerr.ShutdownInProgress, mongoerr.NotPrimaryNoSecondaryOk, mongoerr.NotPrimaryOrSecondary, mongoerr.ClientDisconnect,
		mongoerr.MaxTimeMSExpired, mongoerr.NotYetInitialized, mongoerr.OutOfDiskSpace}, codeOf(err))
}

// atPrimary runs a command at the primary, and tries again as long as it may be of use. An error that is errLost leaves open whether it was done.
func (c *simClient) atPrimary(db string, body bson.Doc, within time.Duration) (reply bson.Doc, err error) {
	ctx, cancel := clock.WithTimeout(c.s.ctx, clock.Wall(), within)
	defer cancel()
	for {
		if reply, err = c.call(ctx, c.guess, db, body); err == nil || !mayBeDone(err) {
			return reply, err
		}
		if c.guess++; c.guess >= simMost || c.s.members[c.guess] == nil {
			c.guess = 0
		}
		if ctx.Err() != nil {
			return nil, fmt.Errorf("%w: %w", errLost, err)
		}
		_ = clock.Wait(ctx, clock.Wall(), time.Duration(10+c.random.IntN(60))*time.Millisecond)
	}
}

// write runs a command as a retryable write.
func (c *simClient) write(text string, args ...any) (bson.Doc, error) {
	c.txns++
	return c.atPrimary("d", c.inSession(fmt.Sprintf(text, args...)).Int64("txnNumber", c.txns).Doc(), simPatience)
}

func (c *simClient) inSession(text string) *bson.Builder {
	return bson.Build().Fields(bson.MustDoc(text)).Document("lsid", c.lsid)
}

// each calls f again and again, with rests, as long as clients work.
func (c *simClient) each(f func() error) {
	for !c.s.over.Load() && c.s.failed() == nil {
		if err := f(); err != nil {
			c.s.fail("%s: %w", c.name, err)
		}
		c.s.pause(time.Duration(c.random.Int64N(2 * int64(simThink))))
	}
}

// docs are the documents of a reply's first batch.
func docs(reply bson.Doc) (out []bson.Doc) {
	for _, v := range reply.Lookup("cursor").Doc().Lookup("firstBatch").Doc().Values(nil) {
		out = append(out, v.Doc())
	}
	return out
}

// simRegistrar reads and writes registers: documents of "r", of which it can be said in which order they were.
type simRegistrar struct {
	*simClient
	history []porcupine.Operation
	known   map[string]int64
}

func (c *simRegistrar) run() {
	c.known = map[string]int64{}
	c.each(func() error {
		begin := c.s.ticks.Add(1)
		in := register.Call{Kind: register.Kind(c.random.IntN(3)), Key: fmt.Sprintf("r%d-%d", c.random.IntN(simRegisters), begin/(simRegisters*simRegisterCalls*2))}
		if in.Kind != register.Read {
			in.Value = c.s.values.Add(1)
		}
		if in.Old = c.known[in.Key]; in.Kind == register.Swap && in.Old == 0 {
			in.Kind = register.Write
		}
		out, err := c.do(in)
		switch {
		case err == nil:
			out.Known = true
			c.s.counts.add(in.Kind.String())
			switch {
			case in.Kind == register.Read:
				c.known[in.Key] = out.Value
			case in.Kind == register.Write, out.Done:
				c.known[in.Key] = in.Value
			default:
				delete(c.known, in.Key)
			}
		case !mayBeDone(err):
			return fmt.Errorf("%v of %s: %w", in.Kind, in.Key, err)
		case in.Kind == register.Read:
			return nil
		default:
			c.s.counts.add("unknown outcome")
		}
		c.history = append(c.history, register.Operation(c.number, in, begin, out, c.s.ticks.Add(1)))
		return nil
	})
}

func (c *simRegistrar) do(in register.Call) (out register.Answer, err error) {
	switch in.Kind {
	case register.Read:
		reply, err := c.atPrimary("d", bson.MustDoc(fmt.Sprintf(`{find: "r", filter: {_id: %q}, readConcern: {level: "linearizable"}, maxTimeMS: 4000}`, in.Key)), simPatience)
		if err != nil {
			return out, err
		}
		for _, d := range docs(reply) {
			out.Value = d.Lookup("v").TruncInt64()
		}
		return out, nil
	case register.Write:
		_, err = c.write(`{update: "r", updates: [{q: {_id: %q}, u: {$set: {v: NumberLong(%d)}}, upsert: true}], writeConcern: {w: "majority"}}`, in.Key, in.Value)
		return out, err
	}
	reply, err := c.write(`{findAndModify: "r", query: {_id: %q, v: NumberLong(%d)}, update: {$set: {v: NumberLong(%d)}}}`, in.Key, in.Old, in.Value)
	if err == nil {
		out.Done = reply.Lookup("value").Type == bson.TypeObject
	}
	return out, err
}

// check looks for an order of what all registrars have done; the first of them does.
func (c *simRegistrar) check() error {
	if c.number > 0 {
		return nil
	}
	var history []porcupine.Operation
	for _, w := range c.s.clients {
		if r, ok := w.(*simRegistrar); ok {
			history = append(history, r.history...)
		}
	}
	for _, text := range register.Check(history, simLimit).Wrong {
		return errors.New(text)
	}
	return nil
}

// simTeller moves money between accounts, in transactions that leave a mark, and looks at the sum at any member.
type simTeller struct {
	*simClient
	marks   int
	acked   []string
	unknown map[string]bool
}

func (c *simTeller) run() {
	c.unknown = map[string]bool{}
	c.each(func() error {
		if c.random.IntN(3) == 0 {
			return c.look()
		}
		return c.move()
	})
}

// look sees one state of a store, in which the sum is right.
func (c *simTeller) look() error {
	place := c.random.IntN(simMembers)
	reply, err := c.call(c.s.ctx, place, "d", bson.MustDoc(`{aggregate: "a", pipeline: [{$group: {_id: null, sum: {$sum: "$n"}, count: {$sum: 1}}}], cursor: {}, maxTimeMS: 2000}`))
	if err != nil {
		if mayBeDone(err) {
			return nil
		}
		return err
	}
	for _, d := range docs(reply) {
		// A secondary may have only some of the accounts yet; none is without its money.
		if count := d.Lookup("count").TruncInt64(); count == simAccounts && d.Lookup("sum").TruncInt64() != simAccounts*simMoney {
			return fmt.Errorf("at member %d the sum is %s", place, d)
		}
	}
	return nil
}

func (c *simTeller) move() error {
	c.marks++
	mark := fmt.Sprintf("%s %d", c.name, c.marks)
	from, to, n := c.random.IntN(simAccounts), c.random.IntN(simAccounts), c.random.IntN(20)
	for range 20 {
		c.txns++
		err := c.attempt(from, to, n, mark)
		switch {
		case err == nil:
			c.acked = append(c.acked, mark)
			c.s.counts.add("transaction")
			return nil
		case errors.Is(err, errLost):
			c.unknown[mark] = true
			c.s.counts.add("unknown outcome")
			return nil
		case !errors.Is(err, errAborted):
			return err
		}
		c.s.counts.add("transaction aborted")
		c.s.pause(time.Duration(c.random.Int64N(int64(100 * time.Millisecond))))
		if c.s.failed() != nil {
			return nil
		}
	}
	return nil
}

var errAborted = errors.New("the transaction was aborted")

// attempt is a transaction. All before the commit is sent once, since nothing of it counts.
func (c *simTeller) attempt(from, to, n int, mark string) error {
	inTxn := func(text string, first bool) error {
		b := c.inSession(text).Int64("txnNumber", c.txns).Bool("autocommit", false)
		if first {
			b.Bool("startTransaction", true)
		}
		_, err := c.call(c.s.ctx, c.guess, "d", b.Doc())
		return err
	}
	statements := []string{
		fmt.Sprintf(`{update: "a", updates: [{q: {_id: %d}, u: {$inc: {n: %d}}}]}`, from, -n),
		fmt.Sprintf(`{update: "a", updates: [{q: {_id: %d}, u: {$inc: {n: %d}}}]}`, to, n),
		fmt.Sprintf(`{insert: "marks", documents: [{_id: %q}]}`, mark),
	}
	for i, text := range statements {
		err := inTxn(text, i == 0)
		if err == nil {
			continue
		}
		at := c.guess
		if mayBeDone(err) {
			c.guess = (c.guess + 1) % simMembers
		} else if code := codeOf(err); code != mongoerr.WriteConflict && code != mongoerr.NoSuchTransaction && code != mongoerr.LockTimeout {
			return err
		}
		_, _ = c.call(c.s.ctx, at, "admin", c.inSession(`{abortTransaction: 1}`).Int64("txnNumber", c.txns).Bool("autocommit", false).Doc())
		return errAborted
	}
	if c.random.IntN(8) == 0 {
		_, _ = c.call(c.s.ctx, c.guess, "admin", c.inSession(`{abortTransaction: 1}`).Int64("txnNumber", c.txns).Bool("autocommit", false).Doc())
		return errAborted
	}
	_, err := c.atPrimary("admin", c.inSession(`{commitTransaction: 1, writeConcern: {w: "majority"}}`).Int64("txnNumber", c.txns).Bool("autocommit", false).Doc(), simPatience)
	if code := codeOf(err); code == mongoerr.NoSuchTransaction || code == mongoerr.WriteConflict {
		return errAborted
	}
	if err == nil && c.random.IntN(4) == 0 { // whoever has not heard the answer asks again
		_, err := c.atPrimary("admin", c.inSession(`{commitTransaction: 1, writeConcern: {w: "majority"}}`).Int64("txnNumber", c.txns).Bool("autocommit", false).Doc(), simPatience)
		if err != nil && !mayBeDone(err) {
			return fmt.Errorf("a transaction that was committed is said not to be: %v", err)
		}
	}
	return err
}

// check: marks are there of what was acknowledged, and of nothing that was aborted; the sum is right.
func (c *simTeller) check() error {
	reply, err := c.atPrimary("d", bson.MustDoc(`{find: "marks", batchSize: 100000}`), simPatience)
	if err != nil {
		return err
	}
	there := map[string]bool{}
	for _, d := range docs(reply) {
		there[d.Lookup("_id").Str()] = true
	}
	for _, mark := range c.acked {
		if !there[mark] {
			return fmt.Errorf("transaction %q was acknowledged and is lost", mark)
		}
		delete(there, mark)
	}
	for mark := range there {
		if len(mark) > len(c.name) && mark[:len(c.name)+1] == c.name+" " && !c.unknown[mark] {
			return fmt.Errorf("transaction %q was aborted, and is there", mark)
		}
	}
	return c.sum()
}

func (c *simTeller) sum() error {
	reply, err := c.atPrimary("d", bson.MustDoc(`{find: "a"}`), simPatience)
	if err != nil {
		return err
	}
	sum := int64(0)
	for _, d := range docs(reply) {
		sum += d.Lookup("n").TruncInt64()
	}
	if sum != simAccounts*simMoney {
		return fmt.Errorf("the sum is %d in the end", sum)
	}
	return nil
}

// simLogger inserts documents, and looks for them at any member, which has what the session has written.
type simLogger struct {
	*simClient
	acked   []int
	unknown map[int]bool
	next    int
}

func (c *simLogger) run() {
	c.unknown = map[int]bool{}
	c.each(func() error {
		n := c.next
		c.next++
		_, err := c.write(`{insert: "log", documents: [{_id: %d}]}`, n)
		switch {
		case err == nil:
			c.acked = append(c.acked, n)
			c.s.counts.add("insert")
		case mayBeDone(err):
			c.unknown[n] = true
			return nil
		default:
			return err
		}
		if c.operation.Type != bson.TypeTimestamp {
			return nil
		}
		place := c.random.IntN(simMembers)
		body := bson.Build().String("find", "log").Document("filter", bson.Build().Int32("_id", int32(n)).Doc()).Int32("maxTimeMS", 2000).
			Object("readConcern").Value("afterClusterTime", c.operation).End().Document("lsid", c.lsid).Doc()
		reply, err := c.call(c.s.ctx, place, "d", body)
		if err != nil {
			if mayBeDone(err) {
				return nil
			}
			return err
		}
		if len(docs(reply)) != 1 {
			return fmt.Errorf("member %d does not show %d, which was written before", place, n)
		}
		return nil
	})
}

func (c *simLogger) check() error {
	reply, err := c.atPrimary("d", bson.MustDoc(`{find: "log", batchSize: 100000}`), simPatience)
	if err != nil {
		return err
	}
	there := map[int]bool{}
	for _, d := range docs(reply) {
		there[int(d.Lookup("_id").TruncInt64())] = true
	}
	for _, n := range c.acked {
		if !there[n] {
			return fmt.Errorf("insert %d was acknowledged and is lost", n)
		}
	}
	if len(there) > len(c.acked)+len(c.unknown) {
		return fmt.Errorf("%d documents of %d inserts, and %d of unknown outcome", len(there), len(c.acked), len(c.unknown))
	}
	return nil
}

// simWatcher writes documents that expire and looks at them at any member, as one session. Those of "p" tell their deadline; those of "h" expire some
// time after they were last written.
type simWatcher struct {
	*simClient
	dated   map[int]int64 // deadlines
	sliding map[int]int64 // the time that was told when it was seen gone; 0: it was not
	next    int
}

func (c *simWatcher) run() {
	c.dated, c.sliding = map[int]int64{}, map[int]int64{}
	c.deaf = c.s.fault == faultStale
	c.each(func() error {
		p := c.random.IntN(10)
		if c.deaf { // it is found by what comes back: more of that
			p = 2 + 6*(p/4)
		}
		switch {
		case p < 2:
			return c.writeDated()
		case p < 4:
			return c.writeSliding()
		case p < 7:
			return c.lookAtDated()
		}
		return errors.Join(c.lookAtSliding(), c.lookAtSliding()) // most likely at two members
	})
}

const simExpiry = 1000 // of "p", in milliseconds

func (c *simWatcher) writeDated() error {
	n, at := c.next, c.s.time.Load()+c.random.Int64N(3000)-500
	c.next++
	_, err := c.write(`{insert: "p", documents: [{_id: %d, at: new Date(%d)}]}`, n, at)
	if err == nil {
		c.dated[n] = at + simExpiry
	} else if !mayBeDone(err) {
		return err
	}
	return nil
}

func (c *simWatcher) writeSliding() error {
	n := c.next
	c.next++
	_, err := c.write(`{insert: "h", documents: [{_id: %d}]}`, n)
	if err == nil {
		c.sliding[n] = 0
	} else if !mayBeDone(err) {
		return err
	}
	return nil
}

// find looks at all documents of a collection, at any member that has what the session knows; known is the time that it hands back.
func (c *simWatcher) find(coll string) (place int, seen map[int]bool, known int64, err error) {
	place = c.random.IntN(simMembers)
	if c.clusterTime != nil && !c.deaf {
		known = c.clusterTime.Lookup("signature").Doc().Lookup("keyId").Int64()
	}
	b := bson.Build().String("find", coll).Int32("batchSize", 100000).Int32("maxTimeMS", 2000).Document("lsid", c.lsid)
	if c.operation.Type == bson.TypeTimestamp {
		b.Object("readConcern").Value("afterClusterTime", c.operation).End()
	}
	reply, err := c.call(c.s.ctx, place, "d", b.Doc())
	if err != nil {
		return place, nil, known, err
	}
	seen = map[int]bool{}
	for _, d := range docs(reply) {
		seen[int(d.Lookup("_id").TruncInt64())] = true
	}
	return place, seen, known, nil
}

// lookAtDated: what is seen had not expired by the time that the session knew when it asked; what is not seen has expired by the primary's time.
func (c *simWatcher) lookAtDated() error {
	place, seen, known, err := c.find("p")
	if err != nil {
		if mayBeDone(err) {
			return nil
		}
		return err
	}
	latest := max(c.s.time.Load(), c.told)
	for n, deadline := range c.dated {
		switch {
		case seen[n] && deadline <= known:
			return fmt.Errorf("member %d shows %d, which expired at %d, and was told the time %d", place, n, deadline, known)
		case !seen[n] && deadline > latest:
			return fmt.Errorf("member %d does not show %d, which expires at %d, by the time %d, and the primary's was never later than %d; %s", place, n, deadline, c.told, latest, c.again("p", place, n))
		case !seen[n]:
			c.s.counts.add("hidden")
		}
	}
	return nil
}

// lookAtSliding: what was seen gone is not seen again.
func (c *simWatcher) lookAtSliding() error {
	place, seen, _, err := c.find("h")
	if err != nil {
		if mayBeDone(err) {
			return nil
		}
		return err
	}
	for n, gone := range c.sliding {
		switch {
		case seen[n] && gone != 0:
			return fmt.Errorf("member %d shows %d again by the time %d, which was gone by %d; %s", place, n, c.told, gone, c.again("h", place, n))
		case !seen[n] && gone == 0:
			c.sliding[n] = c.told
			c.s.counts.add("expired")
		}
	}
	return nil
}

// again looks once more for a document that was not where it should be, for a report.
func (c *simWatcher) again(coll string, place, n int) string {
	reply, err := c.call(c.s.ctx, place, "d", bson.MustDoc(fmt.Sprintf(`{find: %q, filter: {_id: %d}}`, coll, n)))
	if err != nil {
		return fmt.Sprint("asked again, it answers ", err)
	}
	role := ""
	for _, m := range c.s.members {
		if d := m.database(); d != nil {
			number, at := m.engine().Last()
			role += fmt.Sprintf("; member %d has role %d, is at commit %d of %d, its clock at %d", m.place, d.role.Kind, number, at, m.clock.Now().UnixMilli())
		}
	}
	logged := ""
	if reply, err := c.call(c.s.ctx, place, "local", bson.MustDoc(fmt.Sprintf(`{find: "oplog.rs", filter: {ns: "d.%s"}, sort: {$natural: -1}, limit: 40}`, coll))); err == nil {
		for _, d := range docs(reply) {
			logged += "\n" + d.String()
		}
	}
	role += logged
	return fmt.Sprintf("asked again, it shows %v by the time %d%s; operationTime %v", docs(reply), c.told, role, c.operation)
}

// check: it is as before when all is well.
func (c *simWatcher) check() error { return errors.Join(c.lookAtDated(), c.lookAtSliding()) }
