package server

import (
	"context"
	"io"
	"net/http"
	"testing"
)

// A browser is told in mongod's words that it is in the wrong place, and others are served.
func TestBrowserIsTold(t *testing.T) {
	s := start(t, Options{}, handlerFunc(func(_ context.Context, _ *Conn, _ *Request) Reply { return okReply() }))
	r, err := http.Get("http://" + s.Addr().String() + "/some/page?and=more")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil || r.StatusCode != http.StatusOK || r.Header.Get("Content-Type") != "text/plain" ||
		string(text) != "It looks like you are trying to access MongoDB over HTTP on the native driver port.\r\n" {
		t.Errorf("%d %q: %v", r.StatusCode, text, err)
	}
}
