package pebblekv

import (
	"context"
	"errors"
	"fmt"

	"github.com/ebbdb/ebb/internal/kv"
)

// The store takes over tables with one step of its own, which is on stable storage when it is done. A Commit's number is stored in
// the log otherwise. So it goes into a table of its own here, beside those of the pairs: whatever crashes, both are there or neither.
//
// The number has to be known before that table is written, and the disk syncs until the Commit is visible. mu is not held
// meanwhile. Whoever wants to commit waits until it is over (awaitTables), because the next number is known only then, and
// because what comes later may be durable sooner. Pebble would have everybody wait in any case, with mu held.
//
// That what came before is durable first follows from the number, too. Each Commit writes its key, so as long as one of them is in a
// memtable the table of the number overlaps with that. Pebble flushes it before it takes over the tables, or closes and syncs its log.

// takeOver has the store take over tables as the Commit t. ordered: t has its number and its time. What was read or counted in the
// range forget before is forgotten.
func (e *Engine) takeOver(ctx context.Context, paths []string, t *kv.Commit, ordered bool, forget *kv.Range) error {
	c := e.commits
	c.tables.Lock()
	defer c.tables.Unlock()
	if err := c.beginTables(t, ordered, forget); err != nil {
		return err
	}
	defer c.endTables()
	if c.commitKey != nil {
		var number []string
		defer func() { e.removeTables(number) }()
		if err := e.writeNumber(&number, t); err != nil {
			return e.room.explain(err)
		}
		paths = append(paths[:len(paths):len(paths)], number...)
	}
	if err := c.ingest(ctx, paths); err != nil {
		return err
	}
	return c.settled(t, forget)
}

// writeNumber writes a table of the number and the time of t, and nothing else.
func (e *Engine) writeNumber(paths *[]string, t *kv.Commit) error {
	table, err := e.newTable(paths)
	if err != nil {
		return err
	}
	err = table.Set(e.commits.commitKey, appendNumber(nil, t))
	return errors.Join(err, table.Close())
}

// beginTables stamps the Commit of tables, and has all others wait from now on. What is read in the range forget meanwhile is not kept.
func (c *committer) beginTables(t *kv.Commit, ordered bool, forget *kv.Range) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.failure.writable(); err != nil {
		return err
	}
	if err := c.stamp(t, ordered); err != nil {
		return err
	}
	if forget != nil {
		sequence := c.sequence.Load() + 1
		c.rows.ChangeRange(*forget, sequence)
		c.dropCounters(*forget)
		c.sequence.Store(sequence)
	}
	c.mu.tables = true
	return nil
}

// endTables lets others commit again.
func (c *committer) endTables() {
	c.mu.Lock()
	c.mu.tables = false
	c.mu.Unlock()
	c.tablesEnd.Broadcast()
}

// awaitTables waits while tables are taken over. The caller holds mu, and has it again when it returns.
func (c *committer) awaitTables() {
	for c.mu.tables {
		c.tablesEnd.Wait()
	}
}

// settled makes the Commit of tables that the store has taken over visible, so that whoever comes next does not share a view without
// them, and moves next behind them. The range forget is listed again, because who has begun to read in between may have brought what
// was there before.
func (c *committer) settled(t *kv.Commit, forget *kv.Range) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.announce(t)
	c.appears(t)
	b := c.emptyRecord("")
	if err := c.apply(b); err != nil {
		return err
	}
	closeBatch(b)
	sequence := c.sequence.Load() + 1
	if forget != nil {
		c.rows.ChangeRange(*forget, sequence)
		c.dropCounters(*forget)
	}
	c.sequence.Store(sequence)
	c.visible(t)
	return nil
}

// ingest takes over tables. The caller holds c.tables. Pebble panics when it cannot write its log, as commits do then.
func (c *committer) ingest(ctx context.Context, paths []string) (err error) {
	defer func() {
		if r := recover(); r != nil {
			c.stick()
			c.failure.set(fmt.Errorf("take over tables: %v", r))
			err = c.failure.get()
		}
	}()
	return c.db.Ingest(ctx, paths)
}

func (c *committer) stick() {
	c.mu.Lock()
	c.mu.stuck = true
	c.mu.Unlock()
}
