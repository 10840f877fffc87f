package wire

import (
	"bytes"
	"encoding/binary"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// FuzzReadMessage reads any bytes. Its seeds are the scripts of testdata/messages, and what was found in
// testdata/fuzz.
//
//	go test ./internal/wire -run '^$' -fuzz FuzzReadMessage -fuzztime 10m
func FuzzReadMessage(f *testing.F) {
	codec := newCodec(f)
	for _, stream := range seeds(f, codec) {
		f.Add(stream)
	}
	f.Fuzz(func(t *testing.T, stream []byte) { readEverything(t, codec, stream) })
}

// FuzzPayload reads any payload in a frame that is right, which a fuzzer of whole streams seldom gets past.
func FuzzPayload(f *testing.F) {
	codec := newCodec(f)
	for _, stream := range seeds(f, codec) {
		if len(stream) >= headerSize {
			f.Add(binary.LittleEndian.Uint32(stream[12:]), stream[headerSize:])
		}
	}
	f.Fuzz(func(t *testing.T, code uint32, payload []byte) {
		readEverything(t, codec, frame(OpCode(code), payload))
	})
}

func readEverything(t *testing.T, codec *Codec, stream []byte) {
	r := codec.NewReader(bytes.NewReader(stream))
	for {
		m, err := r.ReadMessage()
		if m == nil {
			if err == nil {
				t.Fatal("neither a message nor an error")
			}
			return
		}
		if err == nil {
			verify(t, codec, m)
		} else if _, ok := err.(*mongoerr.Error); !ok {
			t.Fatalf("a message beside the error %v", err)
		}
		m.Release()
	}
}

// verify holds a message to what its documentation says.
func verify(t *testing.T, codec *Codec, m *Message) {
	check := func(d bson.Doc) {
		if err := bson.Validate(d, bson.MaxDepth+1); err != nil {
			t.Fatal(err)
		}
	}
	if m.OpCode != OpMsg && m.OpCode != OpQuery {
		return
	}
	check(m.Body)
	for i, s := range m.Sequences {
		n, size := 0, 0
		for d := range s.Docs() {
			check(d)
			n, size = n+1, size+len(d)
		}
		if n != s.Len() || size != s.Size() {
			t.Fatalf("sequence of %d documents and %d bytes says %d and %d", n, size, s.Len(), s.Size())
		}
		if i > 0 && m.Sequences[0].Name == s.Name || !m.Body.Lookup(s.Name).IsMissing() {
			t.Fatalf("sequence %q is there twice", s.Name)
		}
	}
	var back bytes.Buffer
	out := Outgoing{OpCode: OpMsg, Flags: m.Flags, Compressor: m.Compressor, Body: m.Body}
	if _, err := codec.NewWriter(&back).WriteMessage(out); err != nil {
		t.Fatal(err)
	}
	again, err := codec.NewReader(&back).ReadMessage()
	if err != nil || !bytes.Equal(again.Body, m.Body) {
		t.Fatalf("came back different: %v", err)
	}
	again.Release()
	if _, err := back.ReadByte(); err != io.EOF {
		t.Fatal("the length written is too small")
	}
}

// seeds are the streams of all scripts.
func seeds(f *testing.F, codec *Codec) [][]byte {
	files, err := filepath.Glob("testdata/messages/*.txt")
	if err != nil || len(files) == 0 {
		f.Fatalf("no scripts: %v", err)
	}
	var out [][]byte
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for block := range strings.SplitSeq(string(text), "\n\n") {
			script, _, ok := strings.Cut(block, "\n----")
			if !ok {
				continue
			}
			var lines []string
			for line := range strings.Lines(script) {
				if word := strings.TrimSpace(line); !strings.HasPrefix(word, "#") && word != "read" && word != "bytes" && word != "answer" {
					lines = append(lines, line)
				}
			}
			out = append(out, buildStream(f, codec, strings.Join(lines, "")))
		}
	}
	return out
}
