package wire

import (
	"errors"
	"io"
	"os"
	"slices"
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
)

// trickle gives a stream in pieces of some size; each time it was asked pause times it fails once, as a connection does whose
// deadline has passed.
type trickle struct {
	stream        []byte
	piece, pause  int
	asked, failed int
}

func (r *trickle) Read(p []byte) (int, error) {
	if r.asked++; r.asked%r.pause == 0 {
		r.failed++
		return 0, os.ErrDeadlineExceeded
	}
	if len(r.stream) == 0 {
		return 0, io.EOF
	}
	n := copy(p[:min(len(p), r.piece)], r.stream)
	r.stream = r.stream[n:]
	return n, nil
}

// TestReadAhead reads on behind each message, whatever its size, and finds all messages whole: the one that was read stays valid,
// and the next begins with what was read on.
func TestReadAhead(t *testing.T) {
	codec := newCodec(t)
	sizes := []int{0, 10, firstBuffer - 60, firstBuffer, 20, readBuffer - 100, readBuffer - 40, readBuffer, 30, 3 * readBuffer, 40, 100_000, 50}
	var docs []bson.Doc
	var stream []byte
	for i, size := range sizes {
		pad := slices.Repeat([]byte{byte(i)}, size)
		docs = append(docs, bson.Build().Int32("ping", int32(i)).Binary("pad", 0, pad).Doc())
		stream = append(stream, msgOf(docs[i])...)
	}
	for _, piece := range []int{7, 100, 1 << 20} {
		in := &trickle{stream: stream, piece: piece, pause: 1 << 30}
		r := codec.NewReader(in)
		for i, doc := range docs {
			m, err := r.ReadMessage()
			if err != nil {
				t.Fatalf("pieces of %d: message %d: %v", piece, i, err)
			}
			in.pause, in.asked = 5, 0
			for room := true; room && err == nil; {
				if room, err = r.ReadAhead(); room && r.buffered() > readBuffer {
					t.Fatalf("%d bytes were read ahead", r.buffered())
				}
			}
			in.pause = 1 << 30
			if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) && !errors.Is(err, io.EOF) {
				t.Fatal(err)
			}
			if !slices.Equal(m.Body, doc) {
				t.Errorf("pieces of %d: message %d of %d bytes is another", piece, i, len(doc))
			}
			m.Release()
		}
		if _, err := r.ReadMessage(); err != io.EOF {
			t.Errorf("at the end: %v", err)
		}
		if in.failed == 0 && piece < 1<<20 {
			t.Errorf("pieces of %d: no read failed", piece)
		}
	}
}
