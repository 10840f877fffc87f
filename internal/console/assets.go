package console

import (
	"bytes"
	"compress/gzip"
	"crypto/rand"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"sync"
)

// files are what esbuild makes of the folder console. They are kept in the tree, so that who builds the server needs no Node.js.
//
//go:embed assets
var files embed.FS

// page is what all of them are loaded by.
//
//go:embed page.html
var page []byte

// nonceMark stands in the page where the nonce of its styles belongs: the editor makes its styles while it runs.
const nonceMark = "{{nonce}}"

// asset is one file, as it goes over the network.
type asset struct {
	kind, tag string
	plain     []byte
	packed    func() []byte
}

// assets are the files by the paths of their URLs. Nothing else has one, so no path leads anywhere else.
type assets struct {
	page   []byte
	byPath map[string]*asset
}

func readAssets() (*assets, error) {
	a := &assets{page: page, byPath: map[string]*asset{}}
	entries, err := files.ReadDir("assets")
	if err != nil {
		return nil, fmt.Errorf("read the console's files: %w", err)
	}
	for _, e := range entries {
		b, err := fs.ReadFile(files, path.Join("assets", e.Name()))
		if err != nil {
			return nil, fmt.Errorf("read the console's files: %w", err)
		}
		a.byPath["/"+e.Name()] = newAsset(e.Name(), b)
	}
	return a, nil
}

func newAsset(name string, b []byte) *asset {
	sum := sha256.Sum256(b)
	return &asset{kind: kindOf(name), tag: `"` + hex.EncodeToString(sum[:12]) + `"`, plain: b, packed: sync.OnceValue(func() []byte { return pack(b) })}
}

// kindOf is a file's media type. The machine's own table of them is not asked: it may say anything.
func kindOf(name string) string {
	switch path.Ext(name) {
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".woff2":
		return "font/woff2"
	case ".svg":
		return "image/svg+xml"
	}
	return "text/plain; charset=utf-8"
}

// pack compresses b, once for all browsers.
func pack(b []byte) []byte {
	var out bytes.Buffer
	w, _ := gzip.NewWriterLevel(&out, gzip.BestCompression)
	_, _ = w.Write(b) // to memory
	_ = w.Close()
	return out.Bytes()
}

// serve answers a request for a file.
func (a *assets) serve(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		refuse(w, http.StatusMethodNotAllowed, "there is only GET here")
		return
	}
	if r.URL.Path == "/" {
		a.servePage(w)
		return
	}
	f := a.byPath[r.URL.Path]
	if f == nil {
		refuse(w, http.StatusNotFound, "there is no such file")
		return
	}
	protect(w.Header(), "")
	h := w.Header()
	h.Set("Content-Type", f.kind)
	h.Set("Cache-Control", "no-cache")
	h.Set("ETag", f.tag)
	if r.Header.Get("If-None-Match") == f.tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	body := f.plain
	if path.Ext(r.URL.Path) != ".woff2" && strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		body = f.packed()
		h.Set("Content-Encoding", "gzip")
		h.Set("Vary", "Accept-Encoding")
	}
	_, _ = w.Write(body)
}

func (a *assets) servePage(w http.ResponseWriter) {
	nonce := rand.Text()
	protect(w.Header(), nonce)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(bytes.ReplaceAll(a.page, []byte(nonceMark), []byte(nonce)))
}
