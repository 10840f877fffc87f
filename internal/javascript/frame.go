package javascript

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// What the server and a worker say to each other are frames: the length of what follows the first byte, four bytes; one
// byte that says what it is; and that. Values are their type, one byte, the length of their data, four bytes, and their data.
// Each side takes one frame of the other's at a time, but for results of emit, which may be several.
const (
	// To the worker:
	frameCheck     = 'K' // text: is it a function?
	frameReset     = 'R' // a document: fresh global variables, and these
	frameDefine    = 'F' // number, text: the function of that number
	frameCall      = 'C' // number, values: `this`, and the arguments
	framePredicate = 'P' // number, document
	frameEmit      = 'M' // number, document
	// From the worker:
	frameDone    = 'd' // nothing
	frameValue   = 'v' // a value
	frameTrue    = 't'
	frameFalse   = 'f'
	frameEmitted = 'e' // values, keys and what was emitted for them by turns; another frame follows
	frameFailed  = 'x' // a code, and the words
)

const (
	frameHead = 5
	// maxFrame bounds a frame: the arguments of a function are results of expressions, several of which may be large.
	maxFrame = 256 << 20
	// emittedBytes is about how much of what was emitted one frame has.
	emittedBytes = 1 << 20
	// keptBuffer is the largest buffer that is kept for the next frame.
	keptBuffer = 1 << 20
)

// frame is one being built.
type frame []byte

func newFrame(buf []byte, kind byte) frame { return append(buf[:0], 0, 0, 0, 0, kind) }

func (f frame) number(n uint32) frame { return binary.LittleEndian.AppendUint32(f, n) }

func (f frame) text(s string) frame { return append(f, s...) }

func (f frame) value(v bson.Value) frame {
	f = append(f, byte(v.Type))
	f = binary.LittleEndian.AppendUint32(f, uint32(len(v.Data)))
	return append(f, v.Data...)
}

// send writes f and gives its buffer back for the next.
func (f frame) send(w io.Writer) ([]byte, error) {
	n := len(f) - frameHead
	if n > maxFrame {
		return nil, mongoerr.New(mongoerr.BSONObjectTooLarge, "the arguments of a JavaScript function are larger than %d bytes", maxFrame)
	}
	binary.LittleEndian.PutUint32(f, uint32(n))
	if _, err := w.Write(f); err != nil {
		return nil, err
	}
	if cap(f) > keptBuffer {
		return nil, nil
	}
	return f, nil
}

func failedFrame(buf []byte, err error) frame {
	e := mongoerr.From(err)
	return newFrame(buf, frameFailed).number(uint32(e.Code)).text(e.Message)
}

// receive reads a frame. What it returns is the caller's.
func receive(r io.Reader, head *[frameHead]byte) (kind byte, body []byte, err error) {
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, err
	}
	n := binary.LittleEndian.Uint32(head[:])
	if n > maxFrame {
		return 0, nil, fmt.Errorf("a frame of %d bytes", n)
	}
	if n > 0 {
		body = make([]byte, n)
		_, err = io.ReadFull(r, body)
	}
	return head[frameHead-1], body, err
}

var errFrame = errors.New("a frame ends too early")

// reader takes a frame's body apart.
type reader struct{ rest []byte }

func (r *reader) number() (uint32, error) {
	if len(r.rest) < 4 {
		return 0, errFrame
	}
	n := binary.LittleEndian.Uint32(r.rest)
	r.rest = r.rest[4:]
	return n, nil
}

func (r *reader) value() (bson.Value, error) {
	if len(r.rest) < 5 {
		return bson.Missing, errFrame
	}
	t, n := bson.Type(r.rest[0]), binary.LittleEndian.Uint32(r.rest[1:])
	r.rest = r.rest[5:]
	if uint64(n) > uint64(len(r.rest)) {
		return bson.Missing, errFrame
	}
	v := bson.Value{Type: t, Data: r.rest[:n:n]}
	r.rest = r.rest[n:]
	return v, nil
}

// failed is the error of a frame.
func failed(body []byte) error {
	r := reader{body}
	code, err := r.number()
	if err != nil {
		return err
	}
	return mongoerr.New(mongoerr.Code(int32(code)), "%s", r.rest)
}
