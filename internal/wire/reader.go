package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/ebbdb/ebb/internal/mongoerr"
)

const (
	// firstBuffer is what a connection costs in buffers until it has sent a message that does not fit; an everyday command does,
	// so it takes one read. readBuffer is what it costs then.
	firstBuffer = 1 << 10
	readBuffer  = 4 << 10
	// minRoom is how much there must be left of the buffer for reading ahead to use it.
	minRoom = 512
	// firstStep is what is set aside for a message on the word of its length alone. More follows as bytes arrive.
	firstStep = 64 << 10
	// stepFactor bounds the memory of a message at this times the bytes that arrived.
	stepFactor = 4
)

// Reader reads messages from one connection. It is used by one goroutine at a time.
type Reader struct {
	codec *Codec
	in    io.Reader
	// buf[from:to] has arrived and nobody has read it. A message that fits buf is not copied out of it.
	buf      []byte
	from, to int
	msg      Message
	// Admit is asked before a message takes more than firstStep bytes of memory, once a message, with all that it will take at
	// most; it may wait. Its error is ReadMessage's. nil lets everything in.
	// It is told how many bytes of it come over the connection, too.
	Admit func(size, arriving int) error
	// MaxSize is asked how large a message may be when its header is there, which is MaxMessageSize at most; nil is that.
	MaxSize func() int
	// received counts the bytes of large messages as they arrive.
	received atomic.Int64
}

// Received is how many bytes of messages larger than the buffer have arrived so far. It may be called while a message is read.
func (r *Reader) Received() int64 { return r.received.Load() }

// NewReader returns a Reader of in.
func (c *Codec) NewReader(in io.Reader) *Reader {
	return &Reader{codec: c, in: in, buf: make([]byte, firstBuffer)}
}

// Peek waits until n bytes have arrived, which fit the buffer, and shows them. They stay to be read.
func (r *Reader) Peek(n int) ([]byte, error) {
	if err := r.want(n); err != nil {
		return nil, err
	}
	return r.buf[r.from : r.from+n], nil
}

// Switch reads from in from now on, and hands over what has arrived and nobody has read. It is called between two messages.
func (r *Reader) Switch(in io.Reader) (arrived []byte) {
	arrived = append(arrived, r.buf[r.from:r.to]...)
	r.in, r.from, r.to = in, 0, 0
	return arrived
}

// ReadAhead reads once what comes behind the message that ReadMessage gave last, which stays valid. It says whether there is
// room for more.
func (r *Reader) ReadAhead() (room bool, err error) {
	if len(r.buf)-r.to < minRoom {
		r.renew()
	}
	n, err := r.in.Read(r.buf[r.to:])
	r.to += n
	return r.to < len(r.buf), err
}

// renew goes on in a new buffer, and leaves the old one to the message that lies in it.
func (r *Reader) renew() {
	buf := make([]byte, readBuffer)
	r.to = copy(buf, r.buf[r.from:r.to])
	r.buf, r.from = buf, 0
}

// buffered is the number of bytes that arrived behind the last message.
func (r *Reader) buffered() int { return r.to - r.from }

// size is what the header at the front of the buffer says.
func (r *Reader) size() int { return int(int32(binary.LittleEndian.Uint32(r.buf[r.from:]))) }

// fill reads once. The message before must have been released.
func (r *Reader) fill() error {
	if r.from > 0 {
		r.to = copy(r.buf, r.buf[r.from:r.to])
		r.from = 0
	}
	n, err := r.in.Read(r.buf[r.to:])
	r.to += n
	return err
}

// want fills the buffer until it holds n bytes, which fit it.
func (r *Reader) want(n int) error {
	for r.buffered() < n {
		was := r.buffered()
		if err := r.fill(); err != nil && r.buffered() == was {
			return err
		}
	}
	return nil
}

// ReadMessage reads the next message. It is valid until Release or the next ReadMessage.
//
// The error is io.EOF when the peer closed between two messages, a *FrameError when the connection cannot go on, a
// *mongoerr.Error, with the message that says whom to answer, when only this message is bad, or the connection's own.
func (r *Reader) ReadMessage() (*Message, error) {
	m := &r.msg
	if err := r.begin(m); err != nil {
		return nil, err
	}
	if err := r.readPayload(m); err != nil {
		m.Release()
		return nil, err
	}
	err := m.parse()
	if err == nil {
		return m, nil
	}
	if _, answerable := errors.AsType[*mongoerr.Error](err); !answerable {
		m.Release()
		return nil, err
	}
	return m, err
}

// httpGet is how a browser begins.
const httpGet = "GET "

// begin reads m's header, and leaves it in the buffer.
func (r *Reader) begin(m *Message) error {
	if err := r.want(headerSize); err != nil {
		if errors.Is(err, io.EOF) && r.buffered() > 0 {
			return frameErrorf("connection closed in the middle of a message header")
		}
		return err
	}
	header := r.buf[r.from:]
	*m = Message{
		Size:       r.size(),
		RequestID:  int32(binary.LittleEndian.Uint32(header[4:])),
		ResponseTo: int32(binary.LittleEndian.Uint32(header[8:])),
		OpCode:     OpCode(binary.LittleEndian.Uint32(header[12:])),
		Compressor: Uncompressed,
		Sequences:  m.Sequences[:0],
		codec:      r.codec,
		limit:      r.maxSize(),
	}
	if string(header[:len(httpGet)]) == httpGet {
		return ErrHTTP
	}
	if m.Size < headerSize || m.Size > m.limit {
		return frameErrorf("recv(): message msgLen %d is invalid. Min: %d Max: %d", m.Size, headerSize, m.limit)
	}
	copy(m.header[:], header)
	return nil
}

func (r *Reader) maxSize() int {
	if r.MaxSize == nil {
		return MaxMessageSize
	}
	return min(r.MaxSize(), MaxMessageSize)
}

func (r *Reader) readPayload(m *Message) error {
	if m.Size > readBuffer {
		r.from += headerSize
		return r.readLarge(m)
	}
	if m.Size > len(r.buf) {
		r.renew()
	}
	if err := r.want(m.Size); err != nil {
		return r.broken(err, m, r.buffered())
	}
	m.payload = r.buf[r.from+headerSize : r.from+m.Size : r.from+m.Size]
	r.from += m.Size
	return r.admit(m, len(m.payload))
}

// broken is err, which came when have bytes of m had arrived.
func (r *Reader) broken(err error, m *Message, have int) error {
	if errors.Is(err, io.EOF) {
		return frameErrorf("connection closed %d bytes into a message of %d", have, m.Size)
	}
	return fmt.Errorf("read message: %w", err)
}

// admit asks whether m, whose payload of size bytes has begun to arrive, may take what memory it will.
func (r *Reader) admit(m *Message, size int) error {
	if n := m.memory(size); n > firstStep && r.Admit != nil {
		return r.Admit(n, size)
	}
	return nil
}

// readLarge reads on in a payload that does not fit the buffer.
func (r *Reader) readLarge(m *Message) error {
	size := m.Size - headerSize
	m.buf = r.codec.buffers.get(min(size, firstStep))
	if err := r.readTo(m, min(size, firstStep)); err != nil {
		return err
	}
	m.payload = m.buf.data
	if err := r.admit(m, size); err != nil {
		return err
	}
	for len(m.buf.data) < size {
		if len(m.buf.data) == cap(m.buf.data) {
			m.buf = r.codec.buffers.grow(m.buf, min(size, stepFactor*cap(m.buf.data)))
		}
		if err := r.readTo(m, min(size, cap(m.buf.data))); err != nil {
			return err
		}
	}
	m.payload = m.buf.data
	return nil
}

// readTo reads until m's buffer holds end bytes.
func (r *Reader) readTo(m *Message, end int) error {
	for len(m.buf.data) < end {
		have := len(m.buf.data)
		n, err := r.take(m.buf.data[have:end])
		m.buf.data = m.buf.data[:have+n]
		r.received.Add(int64(n))
		if n == 0 && err != nil {
			return r.broken(err, m, headerSize+have)
		}
	}
	return nil
}

// take reads what has arrived already, else from the connection.
func (r *Reader) take(b []byte) (int, error) {
	if r.buffered() == 0 {
		return r.in.Read(b)
	}
	n := copy(b, r.buf[r.from:r.to])
	r.from += n
	return n, nil
}

// memory is what a message with a payload of size bytes takes at most, going by the beginning of it that is there.
func (m *Message) memory(size int) int {
	if m.OpCode != OpCompressed || len(m.payload) < compressedPrefix {
		return size
	}
	inside := int(int32(binary.LittleEndian.Uint32(m.payload[4:])))
	return size + min(max(inside, 0), MaxMessageSize)
}
