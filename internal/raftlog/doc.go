// Package raftlog is the log of a replica set: what its primary orders, kept by a majority of its members before anybody sees it. It drives
// go.etcd.io/raft over a log on disk. It knows nothing of what entries hold but their numbers, nor of how messages travel.
//
// # Parts
//
// A Disk is what a member keeps: the log, its vote, who the members are. A Core is a member without time, goroutines and network: it is ticked,
// given messages and proposals, and says what is to be written, sent and applied. A Member runs a Core: it ticks it by a clock, groups what is
// proposed at about the same time into one append and one sync (gathering), and has one goroutine bring that to the disk and another apply what is committed. So its loop waits
// for nothing: a disk that is slow, or an entry of many megabytes, costs no leadership. A disk that does nothing at all for ten seconds does, the log's or
// the store's: then the member falls silent, and another one leads.
//
// # Identity
//
// A member is known by a random id that it makes together with its Disk. A server whose data is lost comes back as somebody else: what the old
// one had promised by vote and acknowledgement was promised by somebody who is gone, and is not forgotten by who is there.
//
// # Invariants
//
//   - What is committed is never lost while a majority of the voters keeps its disks, and every member applies it in the same order.
//   - An entry is synced here before anybody is told that it is here: what tells of it is an answer of its Write.
//   - The log is cut only before what the store has on stable storage (Machine.Sync); so a store that has lost its end in a crash gets that again.
package raftlog
