package resumetoken

import (
	"bytes"
	"encoding/hex"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/testseed"
)

var testUUID = [16]byte{0x42, 0x84, 0x24, 0x14, 0x9c, 0xd4, 0x44, 0x27, 0xc8, 0x90, 0xef, 0xd1, 0x4f, 0x4e, 0xb2, 0xba}

const testTime = 0x6B036452<<32 | 5

func data(t Token) string { return t.Doc().Lookup("_data").Str() }

// TestForm: the bytes are MongoDB's.
func TestForm(t *testing.T) {
	const head = "826B036452000000052B04"
	const uuid = "5A1004428424149CD44427C890EFD14F4EB2BA"
	const insert = "463C6F7065726174696F6E54797065003C696E736572740046646F63756D656E744B657900"
	one := eventToken(testTime, 0, &testUUID, identifier(bson.MustDoc("{operationType: 'insert', documentKey: {_id: 1}}")))
	for want, token := range map[string]Token{
		head + "29296E1404": HighWaterMark(testTime),
		head + "2C0100296E" + uuid + insert + "461E5F6964002B02000004":                              one,
		head + "2C0100296F" + uuid + insert + "461E5F6964002B02000004":                              one.Invalidate(),
		head + "2C0100296E" + uuid + insert + "461E5F6964002B0200002904":                            one.Part(0),
		head + "2C0100296E" + uuid + insert + "461E5F6964002B0200002B0604":                          one.Part(3),
		head + "2C01002B0E6E" + uuid + insert + "46645F6964006400000000000000000000000100" + "0004": eventToken(testTime, 7, &testUUID, identifier(bson.MustDoc("{operationType: 'insert', documentKey: {_id: ObjectId('000000000000000000000001')}}"))),
		head + "2C0100296E14" + "463C6F7065726174696F6E54797065003C64726F700000" + "04":             eventToken(testTime, 0, nil, identifier(bson.MustDoc("{operationType: 'drop'}"))),
	} {
		if got := data(token); got != want {
			t.Errorf("\n got %s\nwant %s", got, want)
		}
		back, err := Parse(token.Doc())
		if err != nil || data(back) != want || back.Fragment != token.Fragment || back.IsEvent != token.IsEvent || back.TxnOpIndex != token.TxnOpIndex {
			t.Errorf("%s is read as %s, %v", want, data(back), err)
		}
	}
}

// TestOlderTokens: those that older servers have made are read.
func TestOlderTokens(t *testing.T) {
	mark, err := Parse(bson.MustDoc("{_data: '826B036452000000052B0229296E04'}"))
	if err != nil || mark.IsEvent || mark.Time != testTime || Compare(mark, HighWaterMark(testTime)) != 0 {
		t.Errorf("%+v %v", mark, err)
	}
	event, err := Parse(bson.MustDoc("{_data: '826b036452000000052b022C0100296E5A1004428424149CD44427C890EFD14F4EB2BA461E5F6964002B020004'}"))
	if err != nil || !event.IsEvent || event.UUID != testUUID || Compare(event, mark) < 0 {
		t.Errorf("%+v %v", event, err)
	}
}

// TestBadTokens: what is wrong with a token is said as MongoDB says it.
func TestBadTokens(t *testing.T) {
	const head = "826B036452000000052B04"
	for text, want := range map[string]mongoerr.Code{
		`{}`:                                          40647,
		`{_data: 1}`:                                  40647,
		`{_data: '82', _typeBits: 1}`:                 40648,
		`{_data: ''}`:                                 40649,
		`{_data: '04'}`:                               40649,
		`{_data: '8'}`:                                mongoerr.FailedToParse,
		`{_data: 'xy'}`:                               mongoerr.FailedToParse,
		`{_data: '2B02'}`:                             50796, // what is no time is the first
		`{_data: '826B03'}`:                           mongoerr.Overflow,
		`{_data: '826B03645200000005'}`:               50796,
		`{_data: '826B036452000000056E'}`:             50854,
		`{_data: '826B036452000000052B06'}`:           50795,
		`{_data: '` + head + `'}`:                     51055,
		`{_data: '` + head + `6E'}`:                   51056,
		`{_data: '` + head + `2B02'}`:                 51057,
		`{_data: '` + head + `29'}`:                   50793,
		`{_data: '` + head + `2914'}`:                 50855,
		`{_data: '` + head + `2927FD'}`:               50794,
		`{_data: '` + head + `2929'}`:                 50872,
		`{_data: '` + head + `292929'}`:               50870,
		`{_data: '` + head + `29296E04'}`:             6189500,
		`{_data: '` + head + `29296E29'}`:             mongoerr.InvalidUUID,
		`{_data: '` + head + `29296E5A'}`:             mongoerr.Overflow, // a key is taken apart before it is understood
		`{_data: '` + head + `29296E14460004'}`:       6189504,
		`{_data: '` + head + `2C0100296E1404'}`:       6189501,
		`{_data: '` + head + `2C0100296E1429'}`:       6189503,
		`{_data: '` + head + `2C0100296E1446'}`:       mongoerr.Overflow,
		`{_data: '` + head + `2C0100296E14463C61'}`:   50816,
		`{_data: '` + head + `2C0100296E1446FF00FF'}`: 50811,
		`{_data: '` + head + `2C0100296E1446006E'}`:   7182501,
		`{_data: '` + head + `2C0100296E144600296E'}`: 40646,
		`{_data: '` + head + `2C0100296E146EFE'}`:     mongoerr.Overflow,
		`{_data: '00'}`:                               50811,
		`{_data: '01'}`:                               mongoerr.Overflow,
		`{_data: '826B036452000000052B0400'}`:         50811,
	} {
		if _, err := Parse(bson.MustDoc(text)); !mongoerr.Is(err, want) {
			t.Errorf("%s: %v, want %d", text, err, want)
		}
	}
	whole := data(eventToken(testTime, 0, &testUUID, identifier(bson.MustDoc("{operationType: 'insert', documentKey: {_id: 1}}"))))
	for cut, want := range map[int]mongoerr.Code{2: 0, 4: mongoerr.Overflow, 6: mongoerr.Overflow} {
		if _, err := Parse(bson.Build().String("_data", whole[:len(whole)-cut]).Doc()); want == 0 && err != nil || want != 0 && !mongoerr.Is(err, want) {
			t.Errorf("without its last %d digits: %v, want %d", cut, err, want)
		}
	}
	for _, more := range []string{"00", "FF", "04", "FE"} { // behind the end nothing counts
		if back, err := Parse(bson.Build().String("_data", whole+more).Doc()); err != nil || data(back) != whole {
			t.Errorf("with %s behind it: %+v %v", more, back, err)
		}
	}
	deep := head + "2C0100296E14" + strings.Repeat("466100", 5000)
	deep = strings.ReplaceAll(deep, "466100", "46466100")
	if _, err := Parse(bson.Build().String("_data", deep).Doc()); !mongoerr.Is(err, mongoerr.Overflow) {
		t.Error(err)
	}
}

func randomValue(rng *rand.Rand, depth int) bson.Value {
	values := []bson.Value{
		bson.Int32(rng.Int32N(600) - 300), bson.Int64(rng.Int64() - rng.Int64()), bson.Int64(-1 << 63), bson.Int64(1<<63 - 1), bson.Double(rng.NormFloat64() * 300), bson.Double(float64(rng.Int64())), bson.Double(1e300), bson.Double(-0.25),
		bson.String([]string{"", "a", "a\x00", "a\x00b", "a\xff", "ab"}[rng.IntN(6)]), bson.Bool(rng.IntN(2) == 0), bson.Date(rng.Int64() - rng.Int64()),
		bson.Timestamp(rng.Uint32(), rng.Uint32()), bson.Binary(byte(rng.IntN(2)), make([]byte, rng.IntN(300))), bson.ObjectID([12]byte{byte(rng.Uint32())}),
		bson.MustDoc("{a: null, b: MinKey, c: MaxKey, d: /x/i, e: Code('x')}").Lookup(string("abcde"[rng.IntN(5)])),
		bson.MustDoc("{a: NumberDecimal('1.5'), b: NumberDecimal('-0.1'), c: NumberDecimal('9007199254740993.00000000001'), d: NumberDecimal('1E400'), e: NumberDecimal('0.99999999999999999999')}").Lookup(string("abcde"[rng.IntN(5)])),
	}
	if depth > 0 && rng.IntN(4) == 0 {
		b := bson.Build()
		for range rng.IntN(3) {
			b.Value(string("ab"[rng.IntN(2)]), randomValue(rng, depth-1))
		}
		return b.Doc().Value()
	}
	return values[rng.IntN(len(values))]
}

// TestOrder: tokens sort as texts in the order of the fields that they are made of, and each is read back.
func TestOrder(t *testing.T) {
	rng := rand.New(rand.NewPCG(testseed.Of(t), 0))
	sign := func(n int) int { return max(-1, min(1, n)) }
	for range 20_000 {
		a, b := randomValue(rng, 3), randomValue(rng, 3)
		key := func(v bson.Value) Token {
			return eventToken(testTime, 0, &testUUID, identifier(bson.Build().String("operationType", "insert").Object("documentKey").Value("_id", v).End().Doc()))
		}
		x, y := key(a), key(b)
		if got, want := sign(strings.Compare(data(x), data(y))), sign(bson.Compare(a, b)); got != want {
			t.Fatalf("%s against %s: %d, want %d\n%s\n%s", a, b, got, want, data(x), data(y))
		}
		back, err := Parse(x.Doc())
		if err != nil || Compare(back, x) != 0 || !bytes.Equal(back.event, x.event) {
			t.Fatalf("%s: %v", a, err)
		}
	}
	one := eventToken(testTime, 1, &testUUID, identifier(bson.MustDoc("{operationType: 'drop'}")))
	rising := []Token{HighWaterMark(testTime), eventToken(testTime, 0, &testUUID, identifier(bson.MustDoc("{operationType: 'insert'}"))), one, one.Part(0), one.Part(1), one.Invalidate(), HighWaterMark(testTime + 1)}
	for i := range rising[1:] {
		if data(rising[i]) >= data(rising[i+1]) || Compare(rising[i], rising[i+1]) >= 0 {
			t.Errorf("%s is not before %s", data(rising[i]), data(rising[i+1]))
		}
	}
}

// FuzzParse: whatever a client sends is read or refused, and what is read is a token again.
func FuzzParse(f *testing.F) {
	one := eventToken(testTime, 3, &testUUID, identifier(bson.MustDoc("{operationType: 'insert', documentKey: {_id: {a: [1, 2.5, 'x', null], b: NumberDecimal('0.1')}}}")))
	for _, token := range []Token{HighWaterMark(1), one, one.Part(2), one.Invalidate()} {
		key, _ := hex.DecodeString(data(token))
		f.Add(key)
	}
	f.Fuzz(func(t *testing.T, key []byte) {
		token, err := parseKey(key)
		if err != nil {
			return
		}
		again, err := Parse(token.Doc())
		if err != nil || Compare(token, again) != 0 || data(again) != data(token) {
			t.Errorf("%x is %+v, then %+v, %v", key, token, again, err)
		}
	})
}

func eventToken(time uint64, txnOpIndex int, uuid *[16]byte, identifier Identifier) (t Token) {
	t.SetEvent(time, txnOpIndex, uuid, identifier)
	return t
}

// TestMemoryIsUsedAgain: what stood in the memory of a token and of its document before leaves no trace, and a token that was set shares none.
func TestMemoryIsUsedAgain(t *testing.T) {
	rng := rand.New(rand.NewPCG(testseed.Of(t), 0))
	var used, copied Token
	room := bson.Doc(bytes.Repeat([]byte{0xFF}, 4096))
	for i := range 2000 {
		id := Identifier{Type: "insert", Name: "documentKey", Of: randomValue(rng, 3)}
		uuid := &testUUID
		if i%3 == 0 {
			uuid = nil
		}
		fresh := eventToken(testTime, i, uuid, id)
		used.SetEvent(testTime, i, uuid, id)
		if i%5 == 0 {
			fresh, used = fresh.Part(i), used.Part(i)
		}
		copied.Set(used)
		want := fresh.Doc()
		if room = used.DocOn(room); !bytes.Equal(room, want) {
			t.Fatalf("%s, want %s", room, want)
		}
		used.SetEvent(testTime+1, 0, nil, Identifier{Type: "drop"})
		if got := copied.Doc(); !bytes.Equal(got, want) {
			t.Fatalf("the copy is %s, want %s", got, want)
		}
	}
}

// identifier is one as a document tells it.
func identifier(doc bson.Doc) Identifier {
	i := Identifier{Type: doc.Index(0).Str()}
	for it := doc.Iter(); it.Next(); {
		i.Name, i.Of = it.Key(), it.Value()
	}
	if i.Name == "operationType" {
		return Identifier{Type: i.Type}
	}
	return i
}
