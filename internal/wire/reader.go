package wire

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

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
}

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
	for len(m.buf.data) < size {
		if len(m.buf.data) == cap(m.buf.data) {
			m.buf = r.codec.buffers.grow(m.buf, min(size, stepFactor*cap(m.buf.data)))
		}
		have := len(m.buf.data)
		end := min(size, cap(m.buf.data))
		n, err := io.ReadFull(r.in, m.buf.data[have:end])
		m.buf.data = m.buf.data[:have+n]
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return frameErrorf("connection closed %d bytes into a message of %d", headerSize+have+n, m.Size)
		}
		if err != nil {
			return fmt.Errorf("read message: %w", err)
		}
	}
	return nil
}
