package raftlog

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// An entry of the log is a byte that says what it is, and that. An empty one is the first of a term.
const (
	// kindCommit is an encoded kv.Commit.
	kindCommit = 1
	// kindPeers is an encoded Peers, which takes the place of the one before.
	kindPeers = 2
)

// Peer is a member as the log knows it.
type Peer struct {
	// ID is the member's own; Member is its _id in the configuration of the set, and Host its address there.
	ID     uint64
	Member int64
	Host   string
}

// Peers are all members, in the order of the configuration.
type Peers []Peer

// Limits of what is read from elsewhere.
const (
	maxPeers    = 64
	maxHostName = 1 << 10
)

var errBrokenPeers = errors.New("raftlog: an encoded list of members is broken")

// ByID is the member with an id.
func (p Peers) ByID(id uint64) (Peer, bool) {
	for _, peer := range p {
		if peer.ID == id {
			return peer, true
		}
	}
	return Peer{}, false
}

// ByHost is the member with an address.
func (p Peers) ByHost(host string) (Peer, bool) {
	for _, peer := range p {
		if peer.Host == host {
			return peer, true
		}
	}
	return Peer{}, false
}

func (p Peers) appendBinary(dst []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(p)))
	for _, peer := range p {
		dst = binary.BigEndian.AppendUint64(dst, peer.ID)
		dst = binary.AppendVarint(dst, peer.Member)
		dst = binary.AppendUvarint(dst, uint64(len(peer.Host)))
		dst = append(dst, peer.Host...)
	}
	return dst
}

func decodePeers(b []byte) (Peers, error) {
	count, n := binary.Uvarint(b)
	if n <= 0 || count > maxPeers {
		return nil, errBrokenPeers
	}
	b = b[n:]
	p := Peers{}
	for range count {
		if len(b) < 8 {
			return nil, errBrokenPeers
		}
		peer := Peer{ID: binary.BigEndian.Uint64(b)}
		b = b[8:]
		member, n := binary.Varint(b)
		if n <= 0 {
			return nil, errBrokenPeers
		}
		b = b[n:]
		length, n := binary.Uvarint(b)
		if n <= 0 || length > maxHostName || length > uint64(len(b)-n) {
			return nil, errBrokenPeers
		}
		peer.Member, peer.Host = member, string(b[n:n+int(length)])
		b = b[n+int(length):]
		p = append(p, peer)
	}
	if len(b) > 0 {
		return nil, errBrokenPeers
	}
	return p, nil
}

// Entry is what is committed, in the order of the log.
type Entry struct {
	Index, Term uint64
	// Commit is an encoded kv.Commit; nil in entries that only the log itself needs.
	Commit []byte
}

// readEntry is what an entry's data says.
func readEntry(data []byte) (commit []byte, peers Peers, err error) {
	if len(data) == 0 {
		return nil, nil, nil
	}
	switch data[0] {
	case kindCommit:
		return data[1:], nil, nil
	case kindPeers:
		peers, err = decodePeers(data[1:])
		return nil, peers, err
	}
	return nil, nil, fmt.Errorf("raftlog: an entry of the log is of kind %d, which this Ebb does not know", data[0])
}
