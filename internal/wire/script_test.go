package wire

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
)

// script builds a stream of bytes from lines, a part of a message each. What a message must say about itself is right
// unless a line says otherwise.
//
//	msg ID, query ID NAMESPACE, op CODE ID    begins a message
//	flags NAME…                               moreToCome, exhaustAllowed, or a number
//	body {…}                                  a kind 0 section; for query, the document
//	sequence NAME [length=N] {…}; {…}         a kind 1 section
//	bytes XX…                                 anything
//	checksum [bad]                            the checksum, and its flag
//	compress NAME [claims=N] [inside=OPCODE]  all so far goes into an OP_COMPRESSED
//	length N                                  a lie in the header
//	cut N                                     the stream loses its last N bytes, and ends
type script struct {
	t       testing.TB
	codec   *Codec
	stream  []byte
	open    bool
	opCode  OpCode
	id      int
	flags   Flags
	payload []byte
	length  int
	sum     string
}

func buildStream(t testing.TB, codec *Codec, text string) []byte {
	s := &script{t: t, codec: codec}
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			word, rest, _ := strings.Cut(line, " ")
			s.line(word, rest)
		}
	}
	s.finish()
	return s.stream
}

func (s *script) line(word, rest string) {
	fields := strings.Fields(rest)
	switch word {
	case "msg":
		s.begin(OpMsg, fields[0])
	case "query":
		s.begin(OpQuery, fields[0])
		s.payload = append(binary.LittleEndian.AppendUint32(s.payload, 0), fields[1]+"\x00"...)
		s.payload = append(s.payload, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff)
	case "op":
		s.begin(OpCode(s.number(fields[0])), fields[1])
	case "flags":
		for _, f := range fields {
			s.flags |= s.flag(f)
		}
	case "body":
		if s.opCode == OpMsg {
			s.payload = append(s.payload, sectionBody)
		}
		s.payload = append(s.payload, s.doc(rest)...)
	case "sequence":
		s.sequence(rest)
	case "bytes":
		b, err := hex.DecodeString(strings.ReplaceAll(rest, " ", ""))
		if err != nil {
			s.t.Fatal(err)
		}
		s.payload = append(s.payload, b...)
	case "checksum":
		s.flags |= FlagChecksumPresent
		s.sum = "right" + rest
	case "compress":
		s.compress(fields)
	case "length":
		s.length = s.number(fields[0])
	case "cut":
		s.finish()
		s.stream = s.stream[:len(s.stream)-s.number(fields[0])]
	default:
		s.t.Fatalf("unknown line %q", word)
	}
}

func (s *script) begin(code OpCode, id string) {
	s.finish()
	*s = script{t: s.t, codec: s.codec, stream: s.stream, open: true, opCode: code, id: s.number(id), length: -1}
}

func (s *script) sequence(rest string) {
	name, rest, _ := strings.Cut(rest, " ")
	length := -1
	if after, ok := strings.CutPrefix(rest, "length="); ok {
		lie, more, _ := strings.Cut(after, " ")
		length, rest = s.number(lie), more
	}
	body := append([]byte(name), 0)
	for text := range strings.SplitSeq(rest, ";") {
		if text = strings.TrimSpace(text); text != "" {
			body = append(body, s.doc(text)...)
		}
	}
	if length < 0 {
		length = 4 + len(body)
	}
	s.payload = append(s.payload, sectionSequence)
	s.payload = append(binary.LittleEndian.AppendUint32(s.payload, uint32(length)), body...)
}

// close puts flags before and a checksum behind the sections.
func (s *script) close() {
	if s.opCode != OpMsg {
		return
	}
	s.payload = append(binary.LittleEndian.AppendUint32(nil, uint32(s.flags)), s.payload...)
	if s.sum == "" {
		return
	}
	head := s.header(headerSize + len(s.payload) + checksumSize)
	sum := crc32.Update(crc32.Checksum(head, castagnoli), castagnoli, s.payload)
	if s.sum != "right" {
		sum++
	}
	s.payload = binary.LittleEndian.AppendUint32(s.payload, sum)
}

func (s *script) compress(fields []string) {
	s.close()
	id, ok := CompressorNamed(fields[0])
	if !ok {
		id = CompressorID(s.number(fields[0]))
	}
	packed, err := s.codec.compress(id, nil, s.payload)
	if err != nil {
		packed = s.payload
	}
	claim, inside := len(s.payload), int(s.opCode)
	for _, f := range fields[1:] {
		name, value, _ := strings.Cut(f, "=")
		switch name {
		case "claims":
			claim = s.number(value)
		case "inside":
			inside = s.number(value)
		}
	}
	s.opCode = OpCompressed
	s.payload = binary.LittleEndian.AppendUint32(nil, uint32(inside))
	s.payload = binary.LittleEndian.AppendUint32(s.payload, uint32(claim))
	s.payload = append(append(s.payload, byte(id)), packed...)
}

func (s *script) header(size int) []byte {
	b := make([]byte, headerSize)
	putHeader(b, Outgoing{RequestID: int32(s.id), OpCode: s.opCode}, size)
	return b
}

func (s *script) finish() {
	if !s.open {
		return
	}
	s.open = false
	s.close()
	size := headerSize + len(s.payload)
	if s.length >= 0 {
		size = s.length
	}
	s.stream = append(append(s.stream, s.header(size)...), s.payload...)
}

func (s *script) flag(name string) Flags {
	switch name {
	case "moreToCome":
		return FlagMoreToCome
	case "exhaustAllowed":
		return FlagExhaustAllowed
	}
	return Flags(s.number(name))
}

func (s *script) number(text string) int {
	n, err := strconv.ParseInt(text, 0, 64)
	if err != nil {
		s.t.Fatal(err)
	}
	return int(n)
}

func (s *script) doc(text string) bson.Doc {
	d, err := bson.ParseDoc(text)
	if err != nil {
		s.t.Fatal(err)
	}
	return d
}

// describe is m in lines.
func describe(m *Message) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %d, %d bytes", m.OpCode, m.RequestID, m.Size)
	if m.Compressor != Uncompressed {
		fmt.Fprintf(&b, ", %s", m.Compressor)
	}
	for _, f := range []struct {
		flag Flags
		name string
	}{{FlagChecksumPresent, "checksumPresent"}, {FlagMoreToCome, "moreToCome"}, {FlagExhaustAllowed, "exhaustAllowed"}} {
		if m.Flags.Has(f.flag) {
			fmt.Fprintf(&b, ", %s", f.name)
		}
	}
	b.WriteByte('\n')
	if m.Namespace != "" {
		fmt.Fprintf(&b, "  namespace %s\n", m.Namespace)
	}
	if m.Body != nil {
		fmt.Fprintf(&b, "  body %s\n", m.Body.Value())
	}
	for _, s := range m.Sequences {
		fmt.Fprintf(&b, "  sequence %s of %d, %d bytes\n", s.Name, s.Len(), s.Size())
		for d := range s.Docs() {
			fmt.Fprintf(&b, "    %s\n", d.Value())
		}
	}
	return b.String()
}

// dump is b in hex, the length first and then 16 bytes a line.
func dump(b []byte) string {
	var out strings.Builder
	fmt.Fprintf(&out, "%d bytes\n", len(b))
	for line := range slices.Chunk(b, 16) {
		fmt.Fprintf(&out, "  % x\n", line)
	}
	return out.String()
}
