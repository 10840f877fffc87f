package crash

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// rawConn is a connection without a driver: what is sent, and sent again, is the test's own.
type rawConn struct {
	net.Conn
	stop func() bool
}

// dialRaw connects. The connection breaks when ctx ends.
func dialRaw(ctx context.Context, addr string) (*rawConn, error) {
	c, err := net.DialTimeout("tcp", addr, 5*time.Second)
	if err != nil {
		return nil, err
	}
	return &rawConn{c, context.AfterFunc(ctx, func() { _ = c.Close() })}, nil
}

func (c *rawConn) close() {
	c.stop()
	_ = c.Close()
}

// opMsg is MongoDB's message of one command, and headBytes what stands before its document.
const (
	opMsg      = 2013
	headBytes  = 16 + 4 + 1
	maxMessage = 48 << 20
)

// errAnswer is an answer of the server that is an error.
type errAnswer struct {
	code   int32
	text   string
	labels []string
}

func (e *errAnswer) Error() string { return fmt.Sprintf("%d: %s %v", e.code, e.text, e.labels) }

// hasCode says whether err is an answer with one of the codes.
func hasCode(err error, codes ...int32) bool {
	var answer *errAnswer
	if !errors.As(err, &answer) {
		return false
	}
	for _, code := range codes {
		if answer.code == code {
			return true
		}
	}
	return false
}

// run sends a command and returns the answer. An error that is no errAnswer is of the connection: nobody knows what was done.
func (c *rawConn) run(db string, command bson.D) (bson.Raw, error) {
	doc, err := bson.Marshal(append(command, bson.E{Key: "$db", Value: db}))
	if err != nil {
		return nil, err
	}
	msg := make([]byte, headBytes, headBytes+len(doc))
	binary.LittleEndian.PutUint32(msg, uint32(headBytes+len(doc)))
	binary.LittleEndian.PutUint32(msg[12:], opMsg)
	if err := c.SetDeadline(time.Now().Add(callLimit)); err != nil {
		return nil, err
	}
	if _, err := c.Write(append(msg, doc...)); err != nil {
		return nil, err
	}
	head := make([]byte, headBytes)
	if _, err := io.ReadFull(c, head); err != nil {
		return nil, err
	}
	size := binary.LittleEndian.Uint32(head)
	if size < headBytes || size > maxMessage {
		return nil, fmt.Errorf("an answer of %d bytes", size)
	}
	reply := make(bson.Raw, size-headBytes)
	if _, err := io.ReadFull(c, reply); err != nil {
		return nil, err
	}
	if err := reply.Validate(); err != nil {
		return nil, err
	}
	var said struct {
		OK          float64
		Code        int32
		ErrMsg      string
		ErrorLabels []string `bson:"errorLabels"`
		WriteErrors []struct {
			Code   int32
			ErrMsg string
		} `bson:"writeErrors"`
	}
	if err := bson.Unmarshal(reply, &said); err != nil {
		return nil, err
	}
	if said.OK != 1 {
		return reply, &errAnswer{said.Code, said.ErrMsg, said.ErrorLabels}
	}
	if len(said.WriteErrors) > 0 {
		return reply, &errAnswer{said.WriteErrors[0].Code, said.WriteErrors[0].ErrMsg, nil}
	}
	return reply, nil
}
