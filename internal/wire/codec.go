package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
)

// Codec is what all connections of one server share: the pooled buffers and the compressors with their state.
type Codec struct {
	enabled []CompressorID

	buffers     buffers
	zlibReaders sync.Pool // of io.ReadCloser that is a zlib.Resetter
	zlibWriters sync.Pool // of *zlib.Writer
	zstdReader  *zstd.Decoder
	zstdWriter  *zstd.Encoder
}

// NewCodec returns a Codec that accepts the named compressors only, in this order of preference.
func NewCodec(compressors []string) (*Codec, error) {
	ids, err := parseCompressors(compressors)
	if err != nil {
		return nil, err
	}
	// The fastest level: a reply waits for it, and a slower one costs more than the bytes it saves on a local network.
	writer, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithLowerEncoderMem(true))
	if err != nil {
		return nil, fmt.Errorf("set up zstd: %w", err)
	}
	reader, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxMemory(MaxMessageSize), zstd.WithDecodeAllCapLimit(true))
	if err != nil {
		return nil, fmt.Errorf("set up zstd: %w", err)
	}
	return &Codec{enabled: ids, zstdReader: reader, zstdWriter: writer}, nil
}

// Enabled is the compressors that the codec accepts.
func (c *Codec) Enabled() []CompressorID { return c.enabled }

// compress appends the compressed form of src to dst.
func (c *Codec) compress(id CompressorID, dst, src []byte) ([]byte, error) {
	switch id {
	case Noop:
		return append(dst, src...), nil
	case Snappy:
		dst = slices.Grow(dst, snappy.MaxEncodedLen(len(src)))
		return dst[:len(dst)+len(snappy.Encode(dst[len(dst):cap(dst)], src))], nil
	case Zlib:
		return c.deflate(dst, src)
	case Zstd:
		return c.zstdWriter.EncodeAll(src, dst), nil
	}
	return nil, fmt.Errorf("cannot compress with %s", id)
}

func (c *Codec) deflate(dst, src []byte) ([]byte, error) {
	out := bytes.NewBuffer(dst)
	w, ok := c.zlibWriters.Get().(*zlib.Writer)
	if ok {
		w.Reset(out)
	} else {
		w = zlib.NewWriter(out)
	}
	defer c.zlibWriters.Put(w)
	if _, err := w.Write(src); err != nil {
		return nil, fmt.Errorf("compress with zlib: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("compress with zlib: %w", err)
	}
	return out.Bytes(), nil
}

// decompress returns a buffer with the size bytes that src must become, which may be limit at most.
func (c *Codec) decompress(id CompressorID, src []byte, size, limit int) (*buffer, error) {
	if !slices.Contains(c.enabled, id) {
		return nil, frameErrorf("Compression algorithm specified in message is not available: %s", id)
	}
	if size < 0 || size > limit {
		return nil, frameErrorf("Decompressed message would be larger than maximum message size: %d bytes", size)
	}
	if size/id.maxExpansion() > len(src) {
		return nil, frameErrorf("%d bytes of %s cannot become %d bytes", len(src), id, size)
	}
	out := c.buffers.get(size)
	got, err := c.expand(id, out.data[:size], src)
	if err != nil || got != size {
		c.buffers.put(out)
		if err == nil {
			err = fmt.Errorf("%d bytes instead of %d", got, size)
		}
		return nil, frameErrorf("Decompressing message with %s: %v", id, err)
	}
	out.data = out.data[:size]
	return out, nil
}

var errMoreThanClaimed = errors.New("more data than the message claims")

// expand fills dst and says how far. What does not fit dst is an error.
func (c *Codec) expand(id CompressorID, dst, src []byte) (int, error) {
	switch id {
	case Noop:
		if len(src) > len(dst) {
			return 0, errMoreThanClaimed
		}
		return copy(dst, src), nil
	case Snappy:
		n, err := snappy.DecodedLen(src)
		if err != nil {
			return 0, err
		}
		if n > len(dst) {
			return 0, errMoreThanClaimed
		}
		got, err := snappy.Decode(dst, src)
		return len(got), err
	case Zlib:
		return c.inflate(dst, src)
	default:
		got, err := c.zstdReader.DecodeAll(src, dst[:0:len(dst)])
		return len(got), err
	}
}

func (c *Codec) inflate(dst, src []byte) (int, error) {
	in := bytes.NewReader(src)
	r, ok := c.zlibReaders.Get().(io.ReadCloser)
	if ok {
		if err := r.(zlib.Resetter).Reset(in, nil); err != nil {
			return 0, err
		}
	} else {
		fresh, err := zlib.NewReader(in)
		if err != nil {
			return 0, err
		}
		r = fresh
	}
	defer c.zlibReaders.Put(r)
	n, err := io.ReadFull(r, dst)
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return n, nil
	}
	if err != nil {
		return n, err
	}
	// One more read takes the stream to its end, where its checksum is verified.
	var extra [1]byte
	switch _, err := io.ReadFull(r, extra[:]); err {
	case io.EOF:
		return n, nil
	case nil:
		return n, errMoreThanClaimed
	default:
		return n, err
	}
}
