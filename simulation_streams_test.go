package ebb

import (
	"fmt"
	"slices"
	"time"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// simFollower follows a change stream of the database, which it resumes at any member by what it was given last, and hears of everything once.
type simFollower struct {
	*simClient
	begin    bson.Value // the time of what was done before the clients begin: the stream is opened with it until it has a token
	cursor   int64      // 0: it has none
	place    int        // of the cursor
	token    bson.Doc
	last     string // of the last event
	inserted map[string]int
	deleted  map[string]bson.Doc // what it was told of them
	counted  map[string]int64    // updates of counters
	marker   bool                // the last one has come
}

// simFollowed are the collections that the follower hears of.
const simFollowed = `["log", "marks", "p", "h", "c", "u", "marker"]`

func (c *simFollower) run() {
	c.inserted, c.deleted, c.counted = map[string]int{}, map[string]bson.Doc{}, map[string]int64{}
	c.each(c.fetch)
}

// fetch opens the stream or reads on.
func (c *simFollower) fetch() error {
	if c.cursor == 0 {
		return c.open()
	}
	body := bson.Build().Int64("getMore", c.cursor).String("collection", "$cmd.aggregate").Int32("batchSize", int32(1+c.random.IntN(50))).Int32("maxTimeMS", int32(1+c.random.IntN(300))).Document("lsid", c.lsid)
	reply, err := c.call(c.s.ctx, c.place, "d", body.Doc())
	if err != nil {
		return c.lose(err)
	}
	return c.take(reply.Lookup("cursor").Doc(), "nextBatch")
}

// lose has the stream be opened once more, unless it has failed for good.
func (c *simFollower) lose(err error) error {
	c.cursor = 0
	if code := codeOf(err); mayBeDone(err) || slices.Contains([]mongoerr.Code{mongoerr.CursorNotFound, mongoerr.CursorKilled, mongoerr.NotYetInitialized}, code) {
		return nil
	}
	return fmt.Errorf("the change stream at member %d: %w", c.place, err)
}

func (c *simFollower) open() error {
	c.place = c.random.IntN(simMembers)
	stage := bson.Build()
	if c.token == nil {
		stage.Value("startAtOperationTime", c.begin)
	} else {
		stage.Document("resumeAfter", c.token)
	}
	match := bson.MustDoc(`{$match: {"ns.coll": {$in: ` + simFollowed + `}}}`)
	body := bson.Build().Int32("aggregate", 1).Value("pipeline", bson.ArrayOf(bson.Build().Document("$changeStream", stage.Doc()).Doc().Value(), match.Value())).
		Object("cursor").End().Int32("maxTimeMS", 2000).Document("lsid", c.lsid)
	reply, err := c.call(c.s.ctx, c.place, "d", body.Doc())
	if err != nil {
		return c.lose(err)
	}
	c.s.counts.add("stream opened")
	cursor := reply.Lookup("cursor").Doc()
	c.cursor = cursor.Lookup("id").Int64()
	return c.take(cursor, "firstBatch")
}

func (c *simFollower) take(cursor bson.Doc, batch string) error {
	for _, v := range cursor.Lookup(batch).Doc().Values(nil) {
		if err := c.hearOf(v.Doc()); err != nil {
			return fmt.Errorf("at member %d: %w", c.place, err)
		}
		if c.token == nil || c.s.fault != faultOldToken {
			c.token = v.Doc().Lookup("_id").Doc().Clone()
		}
	}
	if c.s.fault == faultOldToken && c.random.IntN(20) == 0 {
		c.cursor = 0
		return nil
	}
	if token := cursor.Lookup("postBatchResumeToken"); token.Type == bson.TypeObject && c.random.IntN(2) == 0 {
		c.token = token.Doc().Clone()
	}
	if cursor.Lookup("id").Int64() == 0 {
		return fmt.Errorf("the change stream at member %d has ended: %s", c.place, cursor)
	}
	return nil
}

func (c *simFollower) hearOf(event bson.Doc) error {
	token := event.Lookup("_id").Doc().Lookup("_data").Str()
	if token <= c.last {
		return fmt.Errorf("an event comes after one that is not before it: %s", event)
	}
	c.last = token
	coll := event.Lookup("ns").Doc().Lookup("coll").Str()
	key := coll + event.Lookup("documentKey").Doc().String()
	switch event.Lookup("operationType").Str() {
	case "insert":
		if c.inserted[key]++; c.inserted[key] > 1 {
			return fmt.Errorf("%s is inserted once more: %s", key, event)
		}
		c.marker = c.marker || coll == "marker"
	case "update":
		c.counted[key]++
	case "delete":
		return c.hearOfDeletion(key, coll, event)
	default:
		return fmt.Errorf("nobody has done this: %s", event)
	}
	c.s.counts.add("event")
	return nil
}

// hearOfDeletion: all that goes has expired, by the time of when it goes.
func (c *simFollower) hearOfDeletion(key, coll string, event bson.Doc) error {
	if c.inserted[key] == 0 || c.deleted[key] != nil {
		return fmt.Errorf("%s is deleted, and was not there: %s", key, event)
	}
	c.deleted[key] = event.Clone()
	expiration := event.Lookup("expiration")
	if coll != "p" && coll != "h" || expiration.Type != bson.TypeObject {
		return fmt.Errorf("%s goes, and has not expired: %s", key, event)
	}
	if deadline, at := expiration.Doc().Lookup("deadline"), event.Lookup("wallTime"); deadline.Type != bson.TypeDate || bson.Compare(deadline, at) > 0 {
		return fmt.Errorf("%s goes before its deadline: %s", key, event)
	}
	c.s.counts.add("expiration event")
	return nil
}

// check: the stream has told of all that is there, and of all that was there and has gone.
func (c *simFollower) check() error {
	if _, err := c.write(`{insert: "marker", documents: [{_id: 1}]}`); err != nil {
		return err
	}
	if err := c.s.within(time.Minute, func() error {
		if err := c.fetch(); err != nil {
			return err
		}
		if !c.marker {
			return fmt.Errorf("what was written last has not come")
		}
		return nil
	}); err != nil {
		return err
	}
	for _, coll := range []string{"log", "marks", "u", "c"} {
		reply, err := c.atPrimary("d", bson.Build().String("find", coll).Int32("batchSize", 100000).Doc(), simPatience)
		if err != nil {
			return err
		}
		there := map[string]bool{}
		for _, d := range docs(reply) {
			key := coll + bson.Build().Value("_id", d.Lookup("_id")).Doc().String()
			there[key] = true
			if n := d.Lookup("n").TruncInt64(); coll == "c" && n != c.counted[key] {
				return fmt.Errorf("%s has been counted to %d, and there were %d events", key, n, c.counted[key])
			} else if coll != "c" && c.inserted[key] != 1 {
				return fmt.Errorf("%s is there, and there was no event", key)
			}
		}
		for key := range c.inserted {
			if len(key) > len(coll) && key[:len(coll)+1] == coll+"{" && !there[key] {
				return fmt.Errorf("there was an event of %s, which is not there", key)
			}
		}
	}
	return c.checkExpired()
}

// simKey is what the follower calls a document.
func simKey(coll string, n int) string {
	return coll + bson.Build().Int32("_id", int32(n)).Doc().String()
}

func (c *simFollower) checkExpired() error {
	for key := range c.inserted {
		if (key[0] == 'p' || key[0] == 'h') && c.deleted[key] == nil {
			return fmt.Errorf("%s has gone, and there was no event", key)
		}
	}
	for _, w := range c.s.clients {
		watcher, ok := w.(*simWatcher)
		if !ok {
			continue
		}
		for n := range watcher.sliding {
			if key := simKey("h", n); c.deleted[key] == nil {
				return fmt.Errorf("%s was written, and there was no event of its end", key)
			}
		}
		for n, deadline := range watcher.dated {
			key := simKey("p", n)
			if c.deleted[key] == nil {
				return fmt.Errorf("%s was written, and there was no event of its end", key)
			}
			if told := c.deleted[key].Lookup("expiration").Doc().Lookup("deadline"); told.Millis() != deadline {
				return fmt.Errorf("%s expires at %d, and its event says %s", key, deadline, told)
			}
		}
	}
	return nil
}
