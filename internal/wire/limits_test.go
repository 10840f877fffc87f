package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"runtime"
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/testseed"
)

// allocated is how many bytes f makes the process set aside.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// frame is a message around payload.
func frame(code OpCode, payload []byte) []byte {
	b := make([]byte, headerSize, headerSize+len(payload))
	putHeader(b, Outgoing{OpCode: code}, headerSize+len(payload))
	return append(b, payload...)
}

func msgOf(doc []byte) []byte { return frame(OpMsg, append([]byte{0, 0, 0, 0, sectionBody}, doc...)) }

// nested is a document of that many levels.
func nested(levels int) bson.Doc {
	d := bson.EmptyDoc
	for range levels - 1 {
		d = bson.Build().Document("a", d).Doc()
	}
	return d
}

func TestLyingLengthSetsLittleAside(t *testing.T) {
	codec := newCodec(t)
	stream := make([]byte, headerSize)
	putHeader(stream, Outgoing{OpCode: OpMsg}, MaxMessageSize)
	got := allocated(func() {
		if _, err := codec.NewReader(bytes.NewReader(stream)).ReadMessage(); err == nil {
			t.Error("a message without its bytes was read")
		}
	})
	if limit := uint64(4 * firstStep); got > limit {
		t.Errorf("a header alone made %d bytes be set aside, more than %d", got, limit)
	}
}

func TestMemoryFollowsWhatArrives(t *testing.T) {
	const sent = 5 << 20
	codec := newCodec(t)
	stream := make([]byte, sent)
	putHeader(stream, Outgoing{OpCode: OpMsg}, MaxMessageSize)
	got := allocated(func() {
		if _, err := codec.NewReader(bytes.NewReader(stream)).ReadMessage(); err == nil {
			t.Error("half a message was read")
		}
	})
	// The last buffer is at most stepFactor times what came before it, and those before it add a third to that.
	if limit := uint64(2 * stepFactor * sent); got > limit {
		t.Errorf("%d bytes of a message made %d be set aside, more than %d", sent, got, limit)
	}
}

func TestBombIsRefusedBeforeItsSize(t *testing.T) {
	codec := newCodec(t)
	for _, id := range []CompressorID{Noop, Snappy, Zlib, Zstd} {
		packed, err := codec.compress(id, nil, make([]byte, 1<<10))
		if err != nil {
			t.Fatal(err)
		}
		payload := binary.LittleEndian.AppendUint32(nil, uint32(OpMsg))
		payload = binary.LittleEndian.AppendUint32(payload, MaxMessageSize-headerSize)
		payload = append(append(payload, byte(id)), packed...)
		got := allocated(func() {
			_, err := codec.NewReader(bytes.NewReader(frame(OpCompressed, payload))).ReadMessage()
			if _, closed := errors.AsType[*FrameError](err); !closed {
				t.Errorf("%s: a kilobyte that claims 48 megabytes: %v", id, err)
			}
		})
		if got > 1<<20 {
			t.Errorf("%s: %d bytes were set aside", id, got)
		}
	}
}

// TestBombThatIsOne has more in it than it claims: the claim bounds what comes out.
func TestBombThatIsOne(t *testing.T) {
	codec := newCodec(t)
	const size, claim = 200 << 20, 1 << 20
	for _, id := range []CompressorID{Snappy, Zlib, Zstd} {
		packed, err := codec.compress(id, nil, make([]byte, size))
		if err != nil {
			t.Fatal(err)
		}
		if len(packed) > MaxMessageSize-headerSize-9 {
			t.Fatalf("%s: the bomb of %d bytes is larger than a message", id, len(packed))
		}
		payload := binary.LittleEndian.AppendUint32(nil, uint32(OpMsg))
		payload = binary.LittleEndian.AppendUint32(payload, claim)
		payload = append(append(payload, byte(id)), packed...)
		stream := frame(OpCompressed, payload)
		got := allocated(func() {
			_, err := codec.NewReader(bytes.NewReader(stream)).ReadMessage()
			if _, closed := errors.AsType[*FrameError](err); !closed {
				t.Errorf("%s: %v", id, err)
			}
		})
		if limit := uint64(2*stepFactor*len(stream) + 8*claim); got > limit {
			t.Errorf("%s: %d bytes were set aside, more than %d", id, got, limit)
		}
	}
}

func TestNesting(t *testing.T) {
	codec := newCodec(t)
	for _, c := range []struct {
		levels int
		ok     bool
	}{{1, true}, {bson.MaxDepth + 1, true}, {bson.MaxDepth + 2, false}, {20_000, false}} {
		m, err := codec.NewReader(bytes.NewReader(msgOf(nested(c.levels)))).ReadMessage()
		if m == nil || c.ok != (err == nil) {
			t.Fatalf("%d levels: message %v, error %v", c.levels, m != nil, err)
		}
		if !c.ok && !mongoerr.Is(err, mongoerr.Overflow) {
			t.Errorf("%d levels: %v", c.levels, err)
		}
	}
}

func TestDocumentSizes(t *testing.T) {
	codec := newCodec(t)
	of := func(size int) bson.Doc {
		return bson.Build().Binary("b", 0, make([]byte, size-len(bson.Build().Binary("b", 0, nil).Doc()))).Doc()
	}
	for _, c := range []struct {
		size int
		ok   bool
	}{{MaxDocumentSize, true}, {MaxInternalDocumentSize, true}, {MaxInternalDocumentSize + 1, false}} {
		doc := of(c.size)
		if len(doc) != c.size {
			t.Fatalf("made a document of %d bytes, wanted %d", len(doc), c.size)
		}
		_, err := codec.NewReader(bytes.NewReader(msgOf(doc))).ReadMessage()
		if c.ok && err != nil || !c.ok && !mongoerr.Is(err, mongoerr.BSONObjectTooLarge) {
			t.Errorf("%d bytes: %v", c.size, err)
		}
	}
}

// TestLargestMessage is exactly as large as one may be, in a sequence, over a socket that takes it in pieces.
func TestLargestMessage(t *testing.T) {
	codec := newCodec(t)
	const head = 4 + 1 + 5 + 1 + 4 + len("documents\x00") // flags, body {}, kind, length, name
	payload := append([]byte{0, 0, 0, 0, sectionBody}, bson.EmptyDoc...)
	payload = append(payload, sectionSequence)
	payload = binary.LittleEndian.AppendUint32(payload, uint32(MaxMessageSize-headerSize-4-1-5-1))
	payload = append(payload, "documents\x00"...)
	left, docs := MaxMessageSize-headerSize-head, 0
	for left > 0 {
		size := min(left, MaxDocumentSize)
		payload = append(payload, bson.Build().Binary("b", 0, make([]byte, size-13)).Doc()...)
		left, docs = left-size, docs+1
	}
	near, far := net.Pipe()
	defer near.Close()
	go func() {
		defer far.Close()
		_, _ = far.Write(frame(OpMsg, payload))
	}()
	m, err := codec.NewReader(near).ReadMessage()
	if err != nil {
		t.Fatal(err)
	}
	if m.Size != MaxMessageSize || m.Sequences[0].Len() != docs {
		t.Errorf("%d bytes with %d documents, wanted %d with %d", m.Size, m.Sequences[0].Len(), MaxMessageSize, docs)
	}
}

// TestReplies are written in every way and size, and read back.
func TestReplies(t *testing.T) {
	codec := newCodec(t)
	seed := testseed.Of(t)
	random := rand.New(rand.NewPCG(seed, 0))
	for _, size := range []int{0, 1, 4000, gatherAbove - 100, gatherAbove, gatherAbove + 100, 1 << 20, 16 << 20} {
		if raceEnabled && size > 1<<20 {
			continue // the race detector makes it take half a minute
		}
		blob := make([]byte, size)
		for i := range blob {
			blob[i] = byte(random.Uint32())
		}
		doc := bson.Build().Binary("b", 0, blob).Doc()
		for _, id := range []CompressorID{Uncompressed, Noop, Snappy, Zlib, Zstd} {
			for _, flags := range []Flags{0, FlagChecksumPresent, FlagChecksumPresent | FlagMoreToCome} {
				var stream bytes.Buffer
				out := Outgoing{RequestID: 5, ResponseTo: 6, OpCode: OpMsg, Flags: flags, Compressor: id, Body: doc}
				n, err := codec.NewWriter(&stream).WriteMessage(out)
				if err != nil || n != stream.Len() {
					t.Fatalf("seed %d: %d bytes, %s, flags %d: wrote %d of %d: %v", seed, size, id, flags, n, stream.Len(), err)
				}
				m, err := codec.NewReader(&stream).ReadMessage()
				if err != nil {
					t.Fatalf("seed %d: %d bytes, %s, flags %d: %v", seed, size, id, flags, err)
				}
				if m.RequestID != 5 || m.ResponseTo != 6 || m.Flags != flags || m.Compressor != id || !bytes.Equal(m.Body, doc) {
					t.Errorf("seed %d: %d bytes, %s, flags %d came back different", seed, size, id, flags)
				}
				m.Release()
			}
		}
	}
}

func TestTooLargeReplyIsNotWritten(t *testing.T) {
	var stream bytes.Buffer
	_, err := newCodec(t).NewWriter(&stream).WriteMessage(Outgoing{OpCode: OpMsg, Compressor: Uncompressed, Body: make([]byte, MaxMessageSize)})
	if err == nil || stream.Len() > 0 {
		t.Errorf("error %v, %d bytes written", err, stream.Len())
	}
}

func TestBuffersKeepTheirClass(t *testing.T) {
	var p buffers
	for _, size := range []int{0, 1, 1<<minClassBits - 1, 1 << minClassBits, 1<<minClassBits + 1, MaxMessageSize, 1 << maxClassBits} {
		b := p.get(size)
		if cap(b.data) < size {
			t.Errorf("asked for %d bytes, got %d", size, cap(b.data))
		}
		p.put(b)
	}
	p.put(&buffer{data: make([]byte, 0, 5000)}) // would be too small for its class
	if b := p.get(8000); cap(b.data) < 8000 {
		t.Errorf("asked for 8000 bytes, got %d", cap(b.data))
	}
}

func TestEverydayMessageAllocatesNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector makes pools forget")
	}
	codec := newCodec(t)
	one := msgOf(bson.MustDoc(`{ find: "c", filter: { _id: 1 }, $db: "d" }`))
	r := codec.NewReader(&repeated{data: one})
	w := codec.NewWriter(io.Discard)
	reply := bson.MustDoc(`{ cursor: { firstBatch: [], id: NumberLong(0), ns: "d.c" }, ok: 1.0 }`)
	got := testing.AllocsPerRun(1000, func() {
		m, err := r.ReadMessage()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.WriteMessage(Outgoing{OpCode: OpMsg, Compressor: Uncompressed, Body: reply}); err != nil {
			t.Fatal(err)
		}
		m.Release()
	})
	if got > 0 {
		t.Errorf("%v allocations a message", got)
	}
}

// repeated is the same bytes again and again.
type repeated struct {
	data []byte
	at   int
}

func (r *repeated) Read(p []byte) (int, error) {
	n := copy(p, r.data[r.at:])
	r.at = (r.at + n) % len(r.data)
	return n, nil
}

func BenchmarkMessage(b *testing.B) {
	codec := newCodec(b)
	r := codec.NewReader(&repeated{data: msgOf(bson.MustDoc(`{ find: "c", filter: { _id: 1 }, $db: "d" }`))})
	w := codec.NewWriter(io.Discard)
	reply := bson.MustDoc(`{ cursor: { firstBatch: [], id: NumberLong(0), ns: "d.c" }, ok: 1.0 }`)
	b.ReportAllocs()
	for b.Loop() {
		m, err := r.ReadMessage()
		if err != nil {
			b.Fatal(err)
		}
		if _, err := w.WriteMessage(Outgoing{OpCode: OpMsg, Compressor: Uncompressed, Body: reply}); err != nil {
			b.Fatal(err)
		}
		m.Release()
	}
}

// TestMaxSize: a reader may be told to take less, of what is compressed as well as of what that becomes.
func TestMaxSize(t *testing.T) {
	codec := newCodec(t)
	doc := bson.Build().Binary("b", 0, make([]byte, 1000)).Doc()
	plain := msgOf(doc)
	packed, err := codec.compress(Zlib, nil, plain[headerSize:])
	if err != nil {
		t.Fatal(err)
	}
	payload := binary.LittleEndian.AppendUint32(nil, uint32(OpMsg))
	payload = binary.LittleEndian.AppendUint32(payload, uint32(len(plain)-headerSize))
	payload = append(append(payload, byte(Zlib)), packed...)
	for name, stream := range map[string][]byte{"plain": plain, "compressed": frame(OpCompressed, payload)} {
		for _, below := range []int{0, 1} {
			r := codec.NewReader(bytes.NewReader(stream))
			r.MaxSize = func() int { return len(plain) - below }
			_, err := r.ReadMessage()
			if _, closed := errors.AsType[*FrameError](err); closed != (below > 0) {
				t.Errorf("%s, %d too many: %v", name, below, err)
			}
		}
	}
}
