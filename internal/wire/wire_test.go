package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

func newCodec(t testing.TB) *Codec {
	t.Helper()
	c, err := NewCodec(CompressorNames())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestMessages(t *testing.T) {
	codec := newCodec(t)
	datadriven.Walk(t, "testdata/messages", func(t *testing.T, file string) {
		datadriven.RunTest(t, file, func(t *testing.T, d *datadriven.TestData) string {
			stream := buildStream(t, codec, d.Input)
			switch d.Cmd {
			case "read":
				return readAll(codec, stream)
			case "bytes":
				return dump(stream)
			case "answer":
				return answer(t, codec, stream)
			}
			t.Fatalf("unknown command %s", d.Cmd)
			return ""
		})
	})
}

// readAll says what a reader makes of stream, up to the first error that ends it.
func readAll(codec *Codec, stream []byte) string {
	var out strings.Builder
	r := codec.NewReader(bytes.NewReader(stream))
	for {
		m, err := r.ReadMessage()
		var frame *FrameError
		var invalid *mongoerr.Error
		switch {
		case err == io.EOF:
			out.WriteString("end\n")
		case errors.As(err, &frame):
			fmt.Fprintf(&out, "closed: %v\n", err)
		case errors.As(err, &invalid):
			fmt.Fprintf(&out, "answered to %d: %d %s: %v\n", m.RequestID, invalid.Code, invalid.Code.Name(), err)
		case err != nil:
			fmt.Fprintf(&out, "error: %v\n", err)
		default:
			out.WriteString(describe(m))
		}
		if m == nil {
			return out.String()
		}
		m.Release()
	}
}

// answer writes each message back as an answer to itself, and shows the bytes.
func answer(t *testing.T, codec *Codec, stream []byte) string {
	var wire bytes.Buffer
	r, w := codec.NewReader(bytes.NewReader(stream)), codec.NewWriter(&wire)
	for id := int32(1); ; id++ {
		m, err := r.ReadMessage()
		if err == io.EOF {
			return dump(wire.Bytes()) + readAll(codec, wire.Bytes())
		}
		if err != nil {
			t.Fatal(err)
		}
		out := Outgoing{RequestID: id, ResponseTo: m.RequestID, OpCode: OpMsg, Flags: m.Flags, Compressor: m.Compressor, Body: m.Body}
		if m.OpCode == OpQuery {
			out.OpCode = OpReply
		}
		before := wire.Len()
		n, err := w.WriteMessage(out)
		if err != nil || n != wire.Len()-before {
			t.Fatalf("wrote %d of %d bytes: %v", n, wire.Len()-before, err)
		}
		m.Release()
	}
}

// A request goes on as it came, with its document sequences, compressed or not.
func TestRequestGoesOn(t *testing.T) {
	codec := newCodec(t)
	documents := append(bson.MustDoc("{_id: 1}"), bson.MustDoc("{_id: 2, text: 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx'}")...)
	out := Outgoing{RequestID: 3, OpCode: OpMsg, Body: bson.MustDoc("{insert: 'c'}"), Sequences: []Sequence{{Name: "documents", raw: documents, docs: 2}, {Name: "empty"}}}
	for _, compressor := range []CompressorID{Uncompressed, Snappy, Zlib} {
		for _, flags := range []Flags{0, FlagChecksumPresent, FlagMoreToCome} {
			out.Compressor, out.Flags = compressor, flags
			var stream bytes.Buffer
			n, err := codec.NewWriter(&stream).WriteMessage(out)
			if err != nil || n != stream.Len() {
				t.Fatalf("wrote %d of %d bytes, %v", n, stream.Len(), err)
			}
			m, err := codec.NewReader(&stream).ReadMessage()
			if err != nil {
				t.Fatal(err)
			}
			if len(m.Sequences) != 2 || m.Sequences[0].Name != "documents" || !bytes.Equal(m.Sequences[0].raw, documents) || m.Sequences[0].Len() != 2 ||
				m.Sequences[1].Name != "empty" || m.Sequences[1].Len() != 0 || !bytes.Equal(m.Body, out.Body) || m.Flags != flags || m.Compressor != compressor {
				t.Errorf("compressor %d, flags %b: %s", compressor, flags, describe(m))
			}
			m.Release()
		}
	}
}
