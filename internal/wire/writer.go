package wire

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"sync/atomic"
)

const (
	// gatherAbove is the size from which a reply's document is not copied behind its header, but handed to the kernel
	// beside it, which costs about as much as copying a few KiB.
	gatherAbove = 8 << 10
	// writeStep is how much is handed to the kernel at once, so that it shows how fast a client reads.
	writeStep = 256 << 10

	msgPrefix   = headerSize + 4 + 1         // header, flags, kind of the only section
	replyPrefix = headerSize + 4 + 8 + 4 + 4 // header, flags, cursor, starting from, number returned

	// OP_REPLY's flags: the document is an error; the server understands awaitData.
	queryFailure = 1 << 1
	awaitCapable = 1 << 3
)

// Writer writes messages to one connection, each with one write unless it is very large. It is used by one goroutine.
type Writer struct {
	codec *Codec
	out   io.Writer
	// gather has room for a head, a document and a checksum.
	gather [3][]byte
	// written counts the bytes that the kernel has taken.
	written atomic.Int64
}

// Written is how many bytes have been written so far. It may be called while a message is written.
func (w *Writer) Written() int64 { return w.written.Load() }

// NewWriter returns a Writer to out.
func (c *Codec) NewWriter(out io.Writer) *Writer {
	return &Writer{codec: c, out: out}
}

// Switch writes to out from now on. It is called between two messages.
func (w *Writer) Switch(out io.Writer) { w.out = out }

// Outgoing is a message to be written: an answer, or a request to another server.
type Outgoing struct {
	RequestID  int32
	ResponseTo int32
	// OpCode is OpMsg, or OpReply to answer OP_QUERY.
	OpCode OpCode
	// Flags are OP_MSG's; with FlagChecksumPresent the checksum is added.
	Flags Flags
	// Compressor is Uncompressed for a message as it is.
	Compressor CompressorID
	Body       []byte
	// Sequences follow the body of an OP_MSG; only requests have any.
	Sequences []Sequence
	// QueryFailed marks an OP_REPLY whose document is an error that OP_QUERY's clients look for.
	QueryFailed bool
}

// WriteMessage writes m and returns the number of bytes it took.
func (w *Writer) WriteMessage(m Outgoing) (int, error) {
	size := len(m.Body) + msgPrefix
	if m.OpCode == OpReply {
		size = len(m.Body) + replyPrefix
	}
	for _, s := range m.Sequences {
		size += s.wireSize()
	}
	if m.Flags.Has(FlagChecksumPresent) {
		size += checksumSize
	}
	if size > MaxMessageSize {
		return 0, fmt.Errorf("message of %d bytes is larger than the %d that a message may have", size, MaxMessageSize)
	}
	if m.Compressor != Uncompressed {
		return w.writeCompressed(m, size)
	}
	if size <= gatherAbove || len(m.Sequences) > 0 {
		b := w.codec.buffers.get(size)
		defer w.codec.buffers.put(b)
		b.data = appendMessage(b.data, m, size)
		return w.write(b.data)
	}
	return w.writeGathered(m, size)
}

func (w *Writer) write(b []byte) (int, error) {
	sent := 0
	for {
		n, err := w.out.Write(b[sent:min(sent+writeStep, len(b))])
		sent += n
		w.written.Add(int64(n))
		if err != nil {
			return sent, fmt.Errorf("write message: %w", err)
		}
		if sent == len(b) {
			return sent, nil
		}
	}
}

func (w *Writer) writeGathered(m Outgoing, size int) (int, error) {
	b := w.codec.buffers.get(replyPrefix + checksumSize)
	defer w.codec.buffers.put(b)
	b.data = appendHead(b.data, m, size)
	head := len(b.data)
	if m.Flags.Has(FlagChecksumPresent) {
		sum := crc32.Update(crc32.Checksum(b.data, castagnoli), castagnoli, m.Body)
		b.data = binary.LittleEndian.AppendUint32(b.data, sum)
	}
	first := min(len(m.Body), writeStep)
	w.gather[0], w.gather[1] = b.data[:head], m.Body[:first]
	defer clear(w.gather[:])
	if first == len(m.Body) {
		w.gather[2] = b.data[head:]
		return w.writeParts(w.gather[:])
	}
	n, err := w.writeParts(w.gather[:2])
	for _, rest := range [2][]byte{m.Body[first:], b.data[head:]} {
		if err == nil && len(rest) > 0 {
			var more int
			more, err = w.write(rest)
			n += more
		}
	}
	return n, err
}

// writeParts writes parts with one call of the kernel.
func (w *Writer) writeParts(parts net.Buffers) (int, error) {
	n, err := parts.WriteTo(w.out)
	w.written.Add(n)
	if err != nil {
		return int(n), fmt.Errorf("write message: %w", err)
	}
	return int(n), nil
}

// writeCompressed wraps the message, header off, into OP_COMPRESSED. Where that does not make it fit, it goes as it is.
func (w *Writer) writeCompressed(m Outgoing, size int) (int, error) {
	plain := w.codec.buffers.get(size)
	defer w.codec.buffers.put(plain)
	plain.data = appendMessage(plain.data, m, size)

	b := w.codec.buffers.get(min(size+size/8+1024, MaxMessageSize))
	defer func() { w.codec.buffers.put(b) }()
	b.data = append(b.data, make([]byte, headerSize)...)
	b.data = binary.LittleEndian.AppendUint32(b.data, uint32(m.OpCode))
	b.data = binary.LittleEndian.AppendUint32(b.data, uint32(size-headerSize))
	b.data = append(b.data, byte(m.Compressor))
	packed, err := w.codec.compress(m.Compressor, b.data, plain.data[headerSize:])
	if err != nil {
		return 0, err
	}
	if len(packed) > MaxMessageSize {
		return w.write(plain.data)
	}
	m.OpCode = OpCompressed
	putHeader(packed, m, len(packed))
	return w.write(packed)
}

func appendMessage(dst []byte, m Outgoing, size int) []byte {
	start := len(dst)
	dst = append(appendHead(dst, m, size), m.Body...)
	for _, s := range m.Sequences {
		dst = s.append(dst)
	}
	if m.Flags.Has(FlagChecksumPresent) {
		dst = binary.LittleEndian.AppendUint32(dst, crc32.Checksum(dst[start:], castagnoli))
	}
	return dst
}

// appendHead appends everything that stands before the document.
func appendHead(dst []byte, m Outgoing, size int) []byte {
	start := len(dst)
	if m.OpCode == OpReply {
		dst = append(dst, make([]byte, replyPrefix)...)
		flags := uint32(awaitCapable)
		if m.QueryFailed {
			flags |= queryFailure
		}
		binary.LittleEndian.PutUint32(dst[start+headerSize:], flags)
		binary.LittleEndian.PutUint32(dst[start+replyPrefix-4:], 1)
	} else {
		dst = append(dst, make([]byte, msgPrefix)...)
		binary.LittleEndian.PutUint32(dst[start+headerSize:], uint32(m.Flags))
	}
	putHeader(dst[start:], m, size)
	return dst
}

func putHeader(dst []byte, m Outgoing, size int) {
	binary.LittleEndian.PutUint32(dst[0:], uint32(size))
	binary.LittleEndian.PutUint32(dst[4:], uint32(m.RequestID))
	binary.LittleEndian.PutUint32(dst[8:], uint32(m.ResponseTo))
	binary.LittleEndian.PutUint32(dst[12:], uint32(m.OpCode))
}
