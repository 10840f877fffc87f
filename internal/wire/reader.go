package wire

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/ebbdb/ebb/internal/mongoerr"
)

const (
	// readBuffer is what an idle connection costs in buffers; an everyday command fits it, so it takes one system call.
	readBuffer = 4 << 10
	// firstStep is what is set aside for a message on the word of its length alone. More follows as bytes arrive.
	firstStep = 64 << 10
	// stepFactor bounds the memory of a message at this times the bytes that arrived.
	stepFactor = 4
)

// Reader reads messages from one connection. It is used by one goroutine.
type Reader struct {
	codec  *Codec
	in     *bufio.Reader
	header [headerSize]byte
	msg    Message
	// Admit is asked before a message takes more than firstStep bytes of memory, once a message, with all that it will take at
	// most; it may wait. Its error is ReadMessage's. nil lets everything in.
	Admit func(size int) error
	// received counts the bytes of payloads as they arrive.
	received atomic.Int64
}

// Received is how many bytes of payloads have arrived so far. It may be called while a message is read.
func (r *Reader) Received() int64 { return r.received.Load() }

// NewReader returns a Reader of in.
func (c *Codec) NewReader(in io.Reader) *Reader {
	return &Reader{codec: c, in: bufio.NewReaderSize(in, readBuffer)}
}

// Buffered is the number of bytes that arrived behind the last message.
func (r *Reader) Buffered() int { return r.in.Buffered() }

// ReadMessage reads the next message. It is valid until Release or the next ReadMessage.
//
// The error is io.EOF when the peer closed between two messages, a *FrameError when the connection cannot go on, a
// *mongoerr.Error, with the message that says whom to answer, when only this message is bad, or the connection's own.
func (r *Reader) ReadMessage() (*Message, error) {
	if _, err := io.ReadFull(r.in, r.header[:]); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, frameErrorf("connection closed in the middle of a message header")
		}
		return nil, err
	}
	m := &r.msg
	*m = Message{
		Size:       int(int32(binary.LittleEndian.Uint32(r.header[0:]))),
		RequestID:  int32(binary.LittleEndian.Uint32(r.header[4:])),
		ResponseTo: int32(binary.LittleEndian.Uint32(r.header[8:])),
		OpCode:     OpCode(binary.LittleEndian.Uint32(r.header[12:])),
		Compressor: Uncompressed,
		Sequences:  m.Sequences[:0],
		codec:      r.codec,
	}
	if m.Size < headerSize || m.Size > MaxMessageSize {
		return nil, frameErrorf("recv(): message msgLen %d is invalid. Min: %d Max: %d", m.Size, headerSize, MaxMessageSize)
	}
	if err := r.readPayload(m); err != nil {
		m.Release()
		return nil, err
	}
	err := m.parse(&r.header)
	if _, answerable := errors.AsType[*mongoerr.Error](err); err != nil && !answerable {
		m.Release()
		return nil, err
	}
	return m, err
}

func (r *Reader) readPayload(m *Message) error {
	size := m.Size - headerSize
	m.buf = r.codec.buffers.get(min(size, firstStep))
	if err := r.readTo(m, min(size, firstStep)); err != nil {
		return err
	}
	if n := m.memory(size); n > firstStep && r.Admit != nil {
		if err := r.Admit(n); err != nil {
			return err
		}
	}
	for len(m.buf.data) < size {
		if len(m.buf.data) == cap(m.buf.data) {
			m.buf = r.codec.buffers.grow(m.buf, min(size, stepFactor*cap(m.buf.data)))
		}
		if err := r.readTo(m, min(size, cap(m.buf.data))); err != nil {
			return err
		}
	}
	return nil
}

// readTo reads until m's payload is end bytes long.
func (r *Reader) readTo(m *Message, end int) error {
	for len(m.buf.data) < end {
		have := len(m.buf.data)
		n, err := r.in.Read(m.buf.data[have:end])
		m.buf.data = m.buf.data[:have+n]
		r.received.Add(int64(n))
		switch {
		case n > 0, err == nil:
		case errors.Is(err, io.EOF):
			return frameErrorf("connection closed %d bytes into a message of %d", headerSize+have, m.Size)
		default:
			return fmt.Errorf("read message: %w", err)
		}
	}
	return nil
}

// memory is what a message with a payload of size bytes takes at most, going by the beginning of it that is there.
func (m *Message) memory(size int) int {
	if m.OpCode != OpCompressed || len(m.buf.data) < compressedPrefix {
		return size
	}
	inside := int(int32(binary.LittleEndian.Uint32(m.buf.data[4:])))
	return size + min(max(inside, 0), MaxMessageSize)
}
