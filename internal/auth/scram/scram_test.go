package scram

import (
	"bytes"
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"github.com/xdg-go/scram"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// made is what is stored of a user whose password is pw.
func made(t *testing.T, mechanism, user, password string) bson.Doc {
	t.Helper()
	d, err := Make(mechanism, user, password, MinIterations)
	if err != nil {
		t.Fatal(err)
	}
	return bson.Build().Document(mechanism, d).Doc()
}

// client is a driver's side: what it hashes depends on the mechanism.
func client(t *testing.T, mechanism, user, password string) *scram.ClientConversation {
	t.Helper()
	m, _ := of(mechanism)
	prepared, err := prepare(mechanism, user, password)
	if err != nil {
		t.Fatal(err)
	}
	c, err := m.hash.NewClientUnprepped(user, prepared, "")
	if err != nil {
		t.Fatal(err)
	}
	return c.NewConversation()
}

// login holds the whole conversation, and returns the server's last error.
func login(t *testing.T, mechanism, user, password string, lookup func(string) (Credentials, error)) (*Conversation, error) {
	t.Helper()
	c, s := client(t, mechanism, user, password), NewConversation(mechanism, lookup)
	message, err := c.Step("")
	for err == nil && !c.Done() {
		var answer string
		if answer, err = s.Step(message); err == nil {
			message, err = c.Step(answer)
		}
	}
	if err == nil && !c.Valid() {
		t.Error("the client does not believe the server")
	}
	return s, err
}

func TestLogins(t *testing.T) {
	for _, c := range []struct {
		name, mechanism, user, set, said string
		want                             error
	}{
		{"SHA-1", SHA1, "u", "pw", "pw", nil},
		{"SHA-256", SHA256, "u", "pw", "pw", nil},
		{"wrong, SHA-1", SHA1, "u", "pw", "pW", ErrProof},
		{"wrong, SHA-256", SHA256, "u", "pw", "pW", ErrProof},
		{"signs in the name", SHA256, "a,b=c", "pw", "pw", nil},
		{"prepared: IX as one character", SHA256, "IX", "IX", "\u2168", nil},
		{"prepared: IV with a soft hyphen", SHA256, "\u2168", "\u2163", "I\u00adV", nil},
		{"SHA-1 prepares nothing", SHA1, "IX", "IX", "\u2168", ErrProof},
		{"a name is not prepared", SHA1, "\u2168", "x", "x", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			all := made(t, c.mechanism, c.user, c.set)
			s, err := login(t, c.mechanism, c.user, c.said, func(user string) (Credentials, error) {
				if user != c.user {
					t.Errorf("%q is looked up", user)
				}
				found, ok := Read(c.mechanism, all)
				if !ok {
					t.Error("there are no credentials in " + all.String())
				}
				return found, nil
			})
			if !errors.Is(err, c.want) {
				t.Errorf("error is %v", err)
			}
			if s.Valid() != (c.want == nil) || s.User() != c.user {
				t.Errorf("valid %v, of %q", s.Valid(), s.User())
			}
			if _, err := s.Step("n,,n=u,r=abc"); !errors.Is(err, ErrOver) {
				t.Errorf("after its end: %v", err)
			}
		})
	}
}

// TestKnownAnswer holds what is stored to an example of RFC 7677, and for SCRAM-SHA-1 to MongoDB's digest.
func TestKnownAnswer(t *testing.T) {
	salt, _ := base64.StdEncoding.DecodeString("W22ZaJ0SNY7soEsUEjb6gQ==")
	c, _ := scram.SHA256.NewClientUnprepped("", "pencil", "")
	k, err := c.GetStoredCredentialsWithError(scram.KeyFactors{Salt: string(salt), Iters: 4096})
	if err != nil {
		t.Fatal(err)
	}
	text := base64.StdEncoding.EncodeToString
	all := bson.Build().Object(SHA256).Int32("iterationCount", 4096).String("salt", text(salt)).
		String("storedKey", text(k.StoredKey)).String("serverKey", text(k.ServerKey)).End().Doc()
	found, ok := Read(SHA256, all)
	if !ok {
		t.Fatal("they are not read")
	}
	m, _ := scram.SHA256.NewServer(func(string) (scram.StoredCredentials, error) { return found.c, nil })
	s := m.WithNonceGenerator(func() string { return "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0" }).NewConversation()
	first, err := s.Step("n,,n=user,r=rOprNGfwEbeRWgbNEkqO")
	if want := "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"; err != nil || first != want {
		t.Errorf("first answer %q, %v", first, err)
	}
	last, err := s.Step("c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=")
	if err != nil || last != "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=" {
		t.Errorf("last answer %q, %v", last, err)
	}
	if p, _ := prepare(SHA1, "user", "pencil"); p != "1c33006ec1ffd90f9cadcbcc0e118200" {
		t.Errorf("the digest is %s", p)
	}
}

func TestMessages(t *testing.T) {
	for _, c := range []struct {
		first string
		want  error
	}{
		{"", ErrMessage}, {"n", ErrMessage}, {"n,,", ErrMessage}, {"n,,n=u", ErrMessage}, {"n,,n=,r=abc", ErrMessage},
		{"n,,n=u,r=", ErrMessage}, {"p=x,,n=u,r=abc", ErrMessage}, {"p=tls-unique,,n=u,r=abc", ErrMessage},
		{"n,a=x,n=u,r=abc", ErrOther}, {"n,a=u,n=u,r=abc", nil}, {"y,,n=u,r=abc", nil}, {"n,,n=u,r=abc", nil},
		{"n,,m=x,n=u,r=abc", ErrMessage}, {"n,,n=u=x,r=abc", ErrMessage}, {"n,,x=u,r=abc", ErrMessage},
		{"\xff\xfe", ErrMessage}, {"n,,n=\xff,r=abc", ErrMessage}, {"n,,n=u,r=" + strings.Repeat("x", maxNonce), ErrMessage},
		{"n,,n=" + strings.Repeat("u", MaxMessage) + ",r=abc", ErrTooLarge},
	} {
		t.Run(c.first[:min(len(c.first), 30)], func(t *testing.T) {
			s := NewConversation(SHA256, func(string) (Credentials, error) { return Decoy(SHA256, nil, "u", 15000), nil })
			if _, err := s.Step(c.first); !errors.Is(err, c.want) {
				t.Errorf("error is %v", err)
			}
			if s.Valid() {
				t.Error("it is valid")
			}
		})
	}
}

// TestReplay takes what a client has said in one conversation into the next.
func TestReplay(t *testing.T) {
	all := made(t, SHA256, "u", "pw")
	lookup := func(string) (Credentials, error) { c, _ := Read(SHA256, all); return c, nil }
	c, s := client(t, SHA256, "u", "pw"), NewConversation(SHA256, lookup)
	first, _ := c.Step("")
	answer, _ := s.Step(first)
	final, err := c.Step(answer)
	if err != nil {
		t.Fatal(err)
	}
	again := NewConversation(SHA256, lookup)
	if _, err := again.Step(final); !errors.Is(err, ErrMessage) {
		t.Errorf("a last message as the first: %v", err)
	}
	again = NewConversation(SHA256, lookup)
	if _, err := again.Step(first); err != nil {
		t.Fatal(err)
	}
	if _, err := again.Step(final); !errors.Is(err, ErrMessage) || again.Valid() {
		t.Errorf("a last message of another conversation: %v", err)
	}
	for _, forged := range []string{final + "A", strings.Replace(final, "c=biws", "c=eSws", 1), final[:strings.LastIndex(final, ",")] + ",p=", "", ",,,"} {
		again = NewConversation(SHA256, lookup)
		_, _ = again.Step(first)
		if _, err := again.Step(forged); err == nil || again.Valid() {
			t.Errorf("%q is taken", forged)
		}
	}
	if _, err := s.Step(final); err != nil || !s.Valid() {
		t.Errorf("the conversation itself: %v", err)
	}
}

func TestLookupFails(t *testing.T) {
	why := errors.New("why")
	s := NewConversation(SHA1, func(string) (Credentials, error) { return Credentials{}, why })
	if _, err := s.Step("n,,n=u,r=abc"); !errors.Is(err, why) {
		t.Errorf("error is %v", err)
	}
}

func TestDecoy(t *testing.T) {
	secret := []byte("secret")
	a := Decoy(SHA256, secret, "admin.u", 15000)
	for name, b := range map[string]Credentials{
		"another secret": Decoy(SHA256, []byte("other"), "admin.u", 15000), "another name": Decoy(SHA256, secret, "admin.v", 15000),
		"another mechanism": Decoy(SHA1, secret, "admin.u", 15000),
	} {
		if a.c.Salt == b.c.Salt || bytes.Equal(a.c.StoredKey, b.c.StoredKey) {
			t.Error(name + " gives the same")
		}
	}
	if b := Decoy(SHA256, secret, "admin.u", 15000); a.c.Salt != b.c.Salt {
		t.Error("the same name gives another salt")
	}
	if real, _ := Read(SHA256, made(t, SHA256, "u", "pw")); len(real.c.Salt) != len(a.c.Salt) {
		t.Errorf("a salt of %d bytes is not as long as a real one of %d", len(a.c.Salt), len(real.c.Salt))
	}
}

func TestPasswords(t *testing.T) {
	for _, c := range []struct {
		mechanism, password string
		code                mongoerr.Code
	}{
		{SHA256, "fine", 0}, {SHA1, "a\x07bell", 0}, {SHA256, "a\x07bell", 50692}, {SHA256, "\u00ad", 50692},
		{SHA256, "\xff", mongoerr.BadValue}, {SHA1, "\xff", mongoerr.BadValue}, {SHA1, strings.Repeat("x", maxPassword+1), mongoerr.BadValue},
	} {
		err := CheckPassword(c.mechanism, c.password)
		if err != nil && !mongoerr.Is(err, c.code) || err == nil && c.code != 0 {
			t.Errorf("%s %.10q: %v", c.mechanism, c.password, err)
		}
		if err != nil && strings.Contains(err.Error(), "bell") {
			t.Errorf("the error tells of the password: %v", err)
		}
	}
	for _, n := range []int{0, MinIterations - 1, MaxIterations + 1} {
		if _, err := Make(SHA256, "u", "pw", n); err == nil {
			t.Errorf("%d iterations are taken", n)
		}
	}
	if _, err := Make("PLAIN", "u", "pw", MinIterations); err == nil || Known("PLAIN") {
		t.Error("PLAIN is made")
	}
}

func TestBrokenCredentials(t *testing.T) {
	whole := made(t, SHA256, "u", "pw")
	if _, ok := Read(SHA1, whole); ok {
		t.Error("another mechanism's are found")
	}
	for _, field := range []string{"iterationCount", "salt", "storedKey", "serverKey"} {
		for _, v := range []bson.Value{{}, bson.Int32(1), bson.String("!"), bson.String(""), bson.String(strings.Repeat("A", 4096))} {
			b := bson.Build().Object(SHA256)
			for it := whole.Lookup(SHA256).Doc().Iter(); it.Next(); {
				if it.Key() == field {
					b.Value(field, v)
				} else {
					b.Value(it.Key(), it.Value())
				}
			}
			if _, ok := Read(SHA256, b.End().Doc()); ok {
				t.Errorf("%s: %s is taken", field, v)
			}
		}
	}
}

// FuzzSASL has a client say whatever it likes: it is never taken for somebody.
func FuzzSASL(f *testing.F) {
	f.Add("n,,n=u,r=abc", "c=biws,r=abc,p=")
	f.Add("y,,n=u,r=abc", "c=eSws,r=abc,p=AAAA")
	f.Add("n,a=u,n=u,r=abc,x=1", "c=biws,r=abc,x=1,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=")
	f.Add("p=tls-exporter,,n=u,r=abc", "")
	f.Add("n,,n=u=2C=3D,r=abc", "r=abc")
	f.Add("", ",")
	f.Fuzz(func(t *testing.T, first, last string) {
		for _, mechanism := range Mechanisms() {
			s := NewConversation(mechanism, func(user string) (Credentials, error) {
				return Decoy(mechanism, []byte("secret"), user, 15000), nil
			})
			answer, err := s.Step(first)
			if err == nil && !strings.HasPrefix(answer, "r=") {
				t.Errorf("%q is answered %q", first, answer)
			}
			if err == nil {
				nonce, _, _ := strings.Cut(answer, ",")
				_, err = s.Step(strings.Replace(last, "r=abc", nonce, 1))
			}
			if err == nil || s.Valid() {
				t.Errorf("%q, %q is taken", first, last)
			}
		}
	})
}
