// Package resumetoken makes and reads the resume tokens of change streams, in MongoDB's form: the fields of a Token as one key,
// written in upper-case hexadecimal digits, so that tokens sort as the events that they stand for. It does not know where events
// come from, nor what is resumed.
package resumetoken

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"slices"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// version is that of the tokens that are made: since MongoDB 6.0 all events have an identifier.
const version = 2

// The kinds of tokens, as they are stored.
const (
	highWaterMark = 0
	ofEvent       = 128
)

// noFragment is the Fragment of an event that was not split.
const noFragment = -1

// Token is a place in the stream of all events.
type Token struct {
	// Time is the cluster time of the event: seconds in the upper half, the counter in the lower.
	Time uint64
	// IsEvent says that it is the place of an event. A high water mark, otherwise, lies before all events of its time, and has
	// none of what follows.
	IsEvent bool
	// TxnOpIndex is which operation of a transaction the event is of.
	TxnOpIndex int
	// FromInvalidate says that the event is the invalidate that follows the one named.
	FromInvalidate bool
	// HasUUID says whether the event is about one collection, whose UUID is in UUID.
	HasUUID bool
	UUID    [16]byte
	// Fragment is which part of a split event it is, from 0 on; negative for a whole one.
	Fragment int

	version int
	event   []byte // the event's identifier as a key
}

// HighWaterMark is the place before all events of a time.
func HighWaterMark(time uint64) Token {
	return Token{Time: time, Fragment: noFragment, version: version}
}

// Identifier tells an event apart from others of its time: {operationType, documentKey} or {operationType, operationDescription}.
type Identifier struct {
	// Type is the event's operationType.
	Type string
	// Name is what the field behind it is called, and Of its value; missing where there is none.
	Name string
	Of   bson.Value
}

// append appends the identifier as a key, which is that of an object.
func (i *Identifier) append(dst []byte) []byte {
	dst = append(appendName(append(dst, tagObject), bson.TypeString, "operationType"), tagString)
	dst = appendString(dst, i.Type)
	if !i.Of.IsMissing() {
		dst = appendValue(appendName(dst, i.Of.Type, i.Name), i.Of)
	}
	return append(dst, 0)
}

// SetEvent makes t the place of an event, in the memory that t has: there is one with each event.
func (t *Token) SetEvent(time uint64, txnOpIndex int, uuid *[16]byte, identifier Identifier) {
	key := identifier.append(slices.Grow(t.room(), identifierRoom+len(identifier.Of.Data)))
	*t = Token{Time: time, IsEvent: true, TxnOpIndex: txnOpIndex, Fragment: noFragment, version: version, event: key}
	if uuid != nil {
		t.HasUUID, t.UUID = true, *uuid
	}
}

// Set makes t the same place as another, in the memory that t has.
func (t *Token) Set(to Token) {
	key := append(t.room(), to.event...)
	*t = to
	t.event = key
}

// room is the memory that t has for an identifier; none where that is large, since a stream lives long and most identifiers are small.
func (t *Token) room() []byte {
	if cap(t.event) > maxRoom {
		return nil
	}
	return t.event[:0]
}

// Invalidate is the place of the invalidate that follows the event.
func (t Token) Invalidate() Token {
	t.FromInvalidate = true
	return t
}

// Part is the place of a part of the event, which was split; a negative one is the whole event.
func (t Token) Part(fragment int) Token {
	t.Fragment = max(fragment, noFragment)
	return t
}

// appendKey appends the token as a key.
func (t *Token) appendKey(dst []byte) []byte {
	dst = appendTimestamp(dst, t.Time)
	dst = appendInt(dst, int64(t.version))
	if t.version >= 1 {
		kind := int64(highWaterMark)
		if t.IsEvent {
			kind = ofEvent
		}
		dst = appendInt(dst, kind)
	}
	dst = appendInt(dst, int64(t.TxnOpIndex))
	if t.version >= 1 {
		dst = appendBool(dst, t.FromInvalidate)
	}
	if t.HasUUID {
		dst = appendBinary(dst, subtypeUUID, t.UUID[:])
	} else if t.version >= 2 {
		dst = append(dst, tagNullish)
	}
	dst = append(dst, t.event...)
	if t.Fragment >= 0 {
		dst = appendInt(dst, int64(t.Fragment))
	}
	return append(dst, tagEnd)
}

const (
	upperDigits = "0123456789ABCDEF"
	// identifierRoom is about what an identifier takes beside the bytes of its value, and headRoom the most that a key takes beside it.
	identifierRoom = 64
	headRoom       = 64
	// maxRoom is how much memory at most is used again for another identifier.
	maxRoom = 4 << 10
)

// Doc is the token as clients get it: {_data: "82…"}.
func (t Token) Doc() bson.Doc { return t.DocOn(nil) }

// DocOn is Doc in the memory of another document, which is not used any more. It is made in one piece: the key stands in the
// second half of where its digits go, and none is written over before it was read.
func (t *Token) DocOn(room bson.Doc) bson.Doc {
	const head, tail = 4 + 1 + len("_data") + 1 + 4, 1 + 1
	most := headRoom + len(t.event)
	doc := slices.Grow(room[:0], head+2*most+tail)[:head]
	key := t.appendKey(doc[head+most : head+most])
	binary.LittleEndian.PutUint32(doc, uint32(head+2*len(key)+tail))
	doc[4] = byte(bson.TypeString)
	copy(doc[5:], "_data")
	doc[head-5] = 0
	binary.LittleEndian.PutUint32(doc[head-4:], uint32(2*len(key)+1))
	for _, b := range key {
		doc = append(doc, upperDigits[b>>4], upperDigits[b&15])
	}
	return append(doc, 0, 0)
}

// Compare orders tokens as the events that they stand for: below 0 where a comes before b. A whole event comes before its parts.
func Compare(a, b Token) int {
	a.version, b.version = version, version
	return bytes.Compare(a.appendKey(nil), b.appendKey(nil))
}

// Parse reads a token as a client gives it.
func Parse(doc bson.Doc) (Token, error) {
	data, bits := doc.Lookup("_data"), doc.Lookup("_typeBits")
	if data.Type != bson.TypeString {
		return Token{}, mongoerr.New(40647, "Bad resume token: _data of missing or of wrong type. Expected string, got %s", doc)
	}
	if !bits.IsMissing() {
		if subtype, ok := subtypeOf(bits); !ok || subtype != 0 {
			return Token{}, mongoerr.New(40648, "Bad resume token: _typeBits of wrong type %s", doc)
		}
	}
	key, err := hex.DecodeString(data.Str())
	if err != nil {
		return Token{}, mongoerr.New(mongoerr.FailedToParse, "resume token string was not a valid hex string")
	}
	return parseKey(key)
}

func subtypeOf(v bson.Value) (subtype byte, ok bool) {
	if v.Type != bson.TypeBinary {
		return 0, false
	}
	subtype, _ = v.Binary()
	return subtype, true
}

func parseKey(key []byte) (Token, error) {
	t := Token{Fragment: noFragment}
	values, err := split(key)
	if err != nil {
		return t, err
	}
	if len(values) == 0 {
		return t, mongoerr.New(40649, "invalid empty resume token")
	}
	t.Time = timeOf(values[0])
	values, err = t.parseHead(values[1:])
	if err != nil {
		return t, err
	}
	if len(values) == 0 {
		if t.version > 1 {
			return t, mongoerr.New(6189500, "Expected UUID or null")
		}
		return t, nil
	}
	if values[0][0] != tagNullish {
		if t.UUID, t.HasUUID = uuidOf(values[0]); !t.HasUUID {
			return t, mongoerr.New(mongoerr.InvalidUUID, "UUID must be a 16-byte binary field with UUID (4) subtype")
		}
	}
	return t, t.parseEvent(values[1:])
}

// parseHead reads what all tokens have behind their time, and gives what is behind that.
func (t *Token) parseHead(values [][]byte) ([][]byte, error) {
	next := func(absent mongoerr.Code, absentText string) ([]byte, error) {
		if len(values) == 0 {
			return nil, mongoerr.New(absent, "%s", absentText)
		}
		v := values[0]
		values = values[1:]
		return v, nil
	}
	v, err := next(50796, "Resume Token does not contain version")
	if err != nil {
		return nil, err
	}
	n, ok := intOf(v)
	switch {
	case !ok:
		return nil, mongoerr.New(50854, "Invalid resume token: wrong type for version")
	case n < 0 || n > version:
		return nil, mongoerr.New(50795, "Invalid Resume Token: only supports version 0, 1 and 2")
	}
	t.version, t.IsEvent = int(n), true
	if t.version >= 1 {
		if v, err = next(51055, "Resume Token does not contain tokenType"); err != nil {
			return nil, err
		}
		kind, ok := intOf(v)
		switch {
		case !ok:
			return nil, mongoerr.New(51056, "Resume Token tokenType is not an int.")
		case kind != highWaterMark && kind != ofEvent:
			return nil, mongoerr.New(51057, "Token type %d not recognized", kind)
		}
		t.IsEvent = kind == ofEvent
	}
	if v, err = next(50793, "Resume Token does not contain txnOpIndex"); err != nil {
		return nil, err
	}
	n, ok = intOf(v)
	switch {
	case !ok:
		return nil, mongoerr.New(50855, "Resume Token txnOpIndex is not an integer")
	case n < 0:
		return nil, mongoerr.New(50794, "Invalid Resume Token: txnOpIndex should be non-negative")
	}
	if t.TxnOpIndex = int(n); t.version == 0 {
		return values, nil
	}
	if v, err = next(50872, "Resume Token does not contain fromInvalidate"); err != nil {
		return nil, err
	}
	t.FromInvalidate = v[0] == tagTrue
	if !t.FromInvalidate && v[0] != tagFalse {
		return nil, mongoerr.New(50870, "Resume Token fromInvalidate is not a boolean.")
	}
	return values, nil
}

// parseEvent reads what only the tokens of events have.
func (t *Token) parseEvent(values [][]byte) error {
	switch {
	case len(values) == 0 && t.IsEvent && t.version >= 2:
		return mongoerr.New(6189501, "Expected an eventIdentifier for an event resume token")
	case len(values) == 0:
		return nil
	case !t.IsEvent:
		return mongoerr.New(6189504, "Invalid high water mark token")
	case values[0][0] != tagObject:
		return mongoerr.New(6189503, "Resume Token eventIdentifier is not an object")
	}
	t.event, values = values[0], values[1:]
	if len(values) > 0 && t.version >= 2 {
		n, ok := intOf(values[0])
		if !ok || n < 0 {
			return mongoerr.New(7182501, "Resume token 'fragmentNum' must be a non-negative integer.")
		}
		t.Fragment, values = int(n), values[1:]
	}
	if len(values) > 0 {
		return mongoerr.New(40646, "invalid oversized resume token")
	}
	return nil
}
