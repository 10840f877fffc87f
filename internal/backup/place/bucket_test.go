package place_test

import (
	"bytes"
	"encoding/xml"
	"errors"
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

// store is as much of an object store as a Bucket asks for.
type store struct {
	mu      sync.Mutex
	objects map[string][]byte
}

const bucketPath = "/backups/"

func (s *store) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
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
		w.Header().Set("ETag", `"one"`)
		http.ServeContent(w, r, "", modified, bytes.NewReader(content))
	}
}

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
