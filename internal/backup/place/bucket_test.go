package place_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/ebbdb/ebb/internal/backup/place"
)

// modified is when all objects were written.
var modified = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// store is as much of an object store as a Bucket asks for, with what a test has it do wrong.
type store struct {
	// refuse answers a request in the place of the store, if it likes; or nil.
	refuse func(w http.ResponseWriter, r *http.Request) bool
	// cut is behind how many bytes the next connections that give an object are cut, one after the other.
	cut []int

	mu      sync.Mutex
	objects map[string][]byte
}

const bucketPath = "/backups/"

func (s *store) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refuse != nil && s.refuse(w, r) {
		return
	}
	name := strings.TrimPrefix(r.URL.Path, bucketPath)
	content, there := s.objects[name]
	switch {
	case r.Method == http.MethodPut:
		b, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		s.objects[name] = b
	case name == "" && r.Method == http.MethodGet:
		_, _ = io.WriteString(w, `<ListBucketResult><Name>backups</Name></ListBucketResult>`)
	case name != "" && !there:
		fault(w, http.StatusNotFound, "NoSuchKey", "The specified key does not exist.")
	case name != "":
		w.Header().Set("ETag", fmt.Sprintf(`"%x"`, len(content)))
		if len(s.cut) > 0 && r.Method == http.MethodGet {
			w, s.cut = &cutWriter{w, s.cut[0]}, s.cut[1:]
		}
		http.ServeContent(w, r, "", modified, bytes.NewReader(content))
	}
}

// cutWriter ends the connection behind so many bytes.
type cutWriter struct {
	http.ResponseWriter
	left int
}

func (c *cutWriter) Write(p []byte) (int, error) {
	n, err := c.ResponseWriter.Write(p[:min(len(p), c.left)])
	if c.left -= n; c.left == 0 {
		_ = http.NewResponseController(c).Flush()
		panic(http.ErrAbortHandler)
	}
	return n, err
}

// Unwrap is for the controller.
func (c *cutWriter) Unwrap() http.ResponseWriter { return c.ResponseWriter }

// fault answers as a store does that refuses.
func fault(w http.ResponseWriter, status int, code, message string) {
	w.WriteHeader(status)
	_ = xml.NewEncoder(w).Encode(struct {
		XMLName       xml.Name `xml:"Error"`
		Code, Message string
	}{Code: code, Message: message})
}

// open opens a bucket in a store.
func open(t *testing.T, s *store) (*place.Bucket, error) {
	t.Helper()
	s.objects = map[string][]byte{}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	t.Setenv("AWS_ACCESS_KEY_ID", "ebb")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "hush")
	return place.OpenBucket(t.Context(), "s3://backups", place.Access{Endpoint: server.URL, Region: "us-east-1", PathStyle: true})
}

// TestPutOfWhatFails: what says with its last byte, or before it, that it is wrong is not written.
func TestPutOfWhatFails(t *testing.T) {
	s := &store{}
	b, err := open(t, s)
	if err != nil {
		t.Fatal(err)
	}
	wrong := errors.New("all of it is wrong")
	content := strings.Repeat("x", 1000)
	for name, r := range map[string]io.Reader{
		"at.the.end":       iotest.DataErrReader(io.MultiReader(strings.NewReader(content), iotest.ErrReader(wrong))),
		"before":           io.MultiReader(strings.NewReader(content[1:]), iotest.ErrReader(wrong)),
		"like.the.end":     io.MultiReader(strings.NewReader(content[1:]), iotest.ErrReader(errors.Join(wrong, io.EOF))),
		"like.a.short.one": io.MultiReader(strings.NewReader(content[1:]), iotest.ErrReader(errors.Join(wrong, io.ErrUnexpectedEOF))),
	} {
		if err := b.Put(t.Context(), name, r, int64(len(content))); !errors.Is(err, wrong) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := b.Put(t.Context(), "short", strings.NewReader(content[1:]), int64(len(content))); err == nil || !strings.Contains(err.Error(), "1 bytes are left") {
		t.Errorf("of what is short: %v", err)
	}
	if len(s.objects) > 0 {
		t.Errorf("%d objects are there", len(s.objects))
	}
	if err := b.Put(t.Context(), "whole", iotest.DataErrReader(strings.NewReader(content)), int64(len(content))); err != nil || !bytes.Contains(s.objects["whole"], []byte(content)) {
		t.Errorf("what is whole: %v, %q", err, s.objects["whole"]) // as it is sent, with a signature
	}
}

// TestEmptyObjects: an object of no bytes is sent with its length, without which stores refuse it.
func TestEmptyObjects(t *testing.T) {
	s := &store{refuse: func(w http.ResponseWriter, r *http.Request) bool {
		if r.ContentLength < 0 {
			fault(w, http.StatusLengthRequired, "MissingContentLength", "You must provide the Content-Length HTTP header.")
		}
		return r.ContentLength < 0
	}}
	b, err := open(t, s)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Put(t.Context(), "empty", strings.NewReader(""), 0); err != nil || len(s.objects) != 1 || len(s.objects["empty"]) > 0 {
		t.Errorf("%v, %q", err, s.objects)
	}
}

// TestCutConnections: an object is read on where its connection was cut, and never put together out of two.
func TestCutConnections(t *testing.T) {
	content := bytes.Repeat([]byte("0123456789abcde"), 1000)
	for _, c := range []struct {
		name string
		cut  []int
		// meanwhile is done when it was opened.
		meanwhile func(s *store)
		says      string
	}{
		{"cut often, with something each time", []int{1000, 1, 1, 1, 1, 1, 1, 2000}, nil, ""},
		{"cut again and again with nothing", []int{1000, 0, 0, 0, 0, 0, 0}, nil, "read x at byte 1000 of 15000: unexpected EOF"},
		{"replaced by another", []int{1000}, func(s *store) { s.objects["x"] = content[1:] }, "read x at byte 1000 of 15000, where the connection was cut"},
		{"removed", []int{1000}, func(s *store) { delete(s.objects, "x") }, "there is no such object"},
		{"given from the beginning", []int{1000}, func(s *store) {
			s.refuse = func(_ http.ResponseWriter, r *http.Request) bool { r.Header.Del("Range"); return false }
		}, "15000 bytes of x are given behind byte 1000, and 14000 are left"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &store{}
			b, err := open(t, s)
			if err != nil {
				t.Fatal(err)
			}
			s.objects["x"], s.cut = content, c.cut
			r, err := b.Get(t.Context(), "x")
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			if c.meanwhile != nil {
				s.mu.Lock()
				c.meanwhile(s)
				s.mu.Unlock()
			}
			got, err := io.ReadAll(r)
			if c.says == "" && (err != nil || !bytes.Equal(got, content)) {
				t.Errorf("%d bytes are read, %v", len(got), err)
			}
			if c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
				t.Errorf("read with %v, want words like %q", err, c.says)
			}
		})
	}
}

// TestRefused: it is told why a store refuses, whatever it answers to HEAD, and no secret.
func TestRefused(t *testing.T) {
	for _, c := range []struct {
		status        int
		code, message string
		says          string
	}{
		{http.StatusForbidden, "SignatureDoesNotMatch", "The key is another.", ": The key is another."},
		{http.StatusBadRequest, "InvalidToken", "The token is malformed.", ": The token is malformed."},
		{http.StatusForbidden, "RequestTimeTooSkewed", "The clocks differ.", ": The clocks differ."},
		{http.StatusNotFound, "NoSuchBucket", "Nothing is there.", "there is no bucket backups at "},
	} {
		refuse := func(w http.ResponseWriter, _ *http.Request) bool { fault(w, c.status, c.code, c.message); return true }
		if _, err := open(t, &store{refuse: refuse}); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", c.code, err)
		}
	}
	for _, address := range []string{"http://key:hush@127.0.0.1:1", "http://key:hush%zz@127.0.0.1:1"} {
		if _, err := place.OpenBucket(t.Context(), "s3://backups", place.Access{Endpoint: address}); err == nil || strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: %v", address, err)
		}
	}
	for _, name := range []string{"s3://key:hush@backups", "s3://key:hush%zz@backups"} {
		if _, err := place.OpenBucket(t.Context(), name, place.Access{}); err == nil || strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
