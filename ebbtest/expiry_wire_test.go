package ebbtest_test

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"

	"github.com/ebbdb/ebb/internal/bson"
)

// caller is a client without a driver's opinions: one connection, one command after the other.
type caller struct {
	net.Conn
	last uint32
}

func dial(address string) (*caller, error) {
	conn, err := net.Dial("tcp", address)
	return &caller{Conn: conn}, err
}

// sequences are the fields that drivers send beside the command.
func sequenceOf(command bson.Doc) string {
	return map[string]string{"insert": "documents", "update": "updates", "delete": "deletes"}[command.FirstKey()]
}

// call sends a command and returns its reply, an error's too.
func (c *caller) call(db string, command bson.Doc) (bson.Doc, error) {
	c.last++
	apart := sequenceOf(command)
	body, sequence := bson.Build(), []byte(nil)
	for it := command.Iter(); it.Next(); {
		if it.Key() != apart {
			body.Value(it.Key(), it.Value())
			continue
		}
		for docs := it.Value().Doc().Iter(); docs.Next(); {
			sequence = append(sequence, docs.Value().Data...)
		}
	}
	const opMsg = 2013
	out := make([]byte, 16, 1024)
	binary.LittleEndian.PutUint32(out[4:], c.last)
	binary.LittleEndian.PutUint32(out[12:], opMsg)
	out = append(append(out, 0, 0, 0, 0, 0), body.String("$db", db).Doc()...)
	if apart != "" {
		out = binary.LittleEndian.AppendUint32(append(out, 1), uint32(4+len(apart)+1+len(sequence)))
		out = append(append(append(out, apart...), 0), sequence...)
	}
	binary.LittleEndian.PutUint32(out, uint32(len(out)))
	if _, err := c.Write(out); err != nil {
		return nil, err
	}
	return c.reply()
}

func (c *caller) reply() (bson.Doc, error) {
	const prefix = 16 + 4 + 1
	var head [prefix]byte
	if _, err := io.ReadFull(c, head[:]); err != nil {
		return nil, fmt.Errorf("no reply: %w", err)
	}
	doc := make(bson.Doc, binary.LittleEndian.Uint32(head[:])-prefix)
	_, err := io.ReadFull(c, doc)
	return doc, err
}
