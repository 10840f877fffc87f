package storage

import "context"

// AwaitDurable returns when the Commit with the number and all before it are on stable storage; with kv.AllCommits all that
// returned. Whoever commits kv.Unsynced asks for it here, once for several Commits. The error is kv.ErrUndetermined when nobody
// knows what becomes of them.
func (s *Store) AwaitDurable(number uint64) error { return s.engine.AwaitDurable(number) }

// HoldFiles has the engine's files stay as they are, but for what commits write, until ReleaseFiles; see kv.Engine.
func (s *Store) HoldFiles(ctx context.Context) error { return s.engine.HoldFiles(ctx) }

// ReleaseFiles ends one HoldFiles.
func (s *Store) ReleaseFiles() { s.engine.ReleaseFiles() }

// LastCommit is the number of the youngest Commit, which whoever reads may have seen.
func (s *Store) LastCommit() uint64 {
	number, _ := s.engine.Last()
	return number
}
