package raftlog

import (
	"fmt"

	"github.com/cockroachdb/pebble/v2/vfs"
	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/kv/inspect"
)

// Left is how many Commits the log in a directory has behind one with a number, whether they are committed or not. It opens nothing, and reads
// what can be read of a damaged log; lost is told what cannot.
func Left(disk vfs.FS, dir string, behind uint64, lost func(what string)) (commits int, err error) {
	place := func(key []byte) string { return fmt.Sprintf("key %x of the replica set's log", key) }
	err = inspect.Salvage(disk, dir, lost, place, func(key, value []byte) error {
		if len(key) != entryKeyBytes || key[0] != entryPrefix {
			return nil
		}
		e := &pb.Entry{}
		err := proto.Unmarshal(value, e)
		var commit []byte
		if err == nil && e.GetType() == pb.EntryNormal {
			commit, _, err = readEntry(e.GetData())
		}
		if err != nil {
			lost(fmt.Sprintf("%s: %v", place(key), err))
		} else if commit != nil && kv.CommitNumber(commit) > behind {
			commits++
		}
		return nil
	})
	return commits, err
}
