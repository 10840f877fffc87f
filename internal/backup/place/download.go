package place

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/ebbdb/ebb/internal/clock"
)

const (
	// maxCuts is how often in a row an object is asked for again whose connection was cut, without a byte in between.
	maxCuts = 5
	// stallTimeout is how long a connection may stand still, and dialTimeout how long it may take to be made.
	stallTimeout = 2 * time.Minute
	dialTimeout  = 30 * time.Second
)

// download reads an object of a bucket. Where the connection is cut it goes on behind what it has read, as long as it is the same object.
type download struct {
	ctx    context.Context
	bucket *Bucket
	name   string

	body      io.ReadCloser
	etag      string
	at, bytes int64
	cuts      int
}

func (d *download) open() error {
	var from minio.GetObjectOptions
	if d.at > 0 {
		from.Set("Range", fmt.Sprintf("bytes=%d-", d.at))
		if d.etag != "" {
			from.Set("If-Match", `"`+d.etag+`"`)
		}
	}
	body, info, _, err := minio.Core{Client: d.bucket.client}.GetObject(d.ctx, d.bucket.bucket, d.bucket.prefix+d.name, from)
	if err != nil {
		return missing(d.name, err)
	}
	if d.at > 0 && info.Size != d.bytes-d.at {
		_ = body.Close()
		return fmt.Errorf("%d bytes of %s are given behind byte %d, and %d are left", info.Size, d.name, d.at, d.bytes-d.at)
	}
	d.body, d.etag, d.bytes = body, info.ETag, d.at+info.Size
	return nil
}

func (d *download) Read(p []byte) (int, error) {
	for {
		n, err := d.body.Read(p)
		d.at += int64(n)
		if n > 0 {
			d.cuts = 0
		}
		if err == nil || n > 0 || d.at >= d.bytes {
			return n, err
		}
		if d.cuts++; d.cuts > maxCuts || d.ctx.Err() != nil {
			return 0, fmt.Errorf("read %s at byte %d of %d: %w", d.name, d.at, d.bytes, err)
		}
		_ = d.body.Close()
		if err := d.open(); err != nil {
			return 0, fmt.Errorf("read %s at byte %d of %d, where the connection was cut: %w", d.name, d.at, d.bytes, err)
		}
	}
}

func (d *download) Close() error { return d.body.Close() }

// transport ends connections that stand still, which nothing else would end.
func transport(secure bool) (*http.Transport, error) {
	t, err := minio.DefaultTransport(secure)
	if err != nil {
		return nil, err
	}
	dialer := &net.Dialer{Timeout: dialTimeout}
	t.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := dialer.DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &watched{c, clock.Wall()}, nil
	}
	return t, nil
}

// watched is a connection that fails when nothing has come or gone for stallTimeout. What goes counts for what is awaited, too: an answer
// comes when all was sent.
type watched struct {
	net.Conn
	clock clock.Clock
}

func (w *watched) Read(p []byte) (int, error) {
	if err := w.goOn(); err != nil {
		return 0, err
	}
	return w.Conn.Read(p)
}

func (w *watched) Write(p []byte) (int, error) {
	if err := w.goOn(); err != nil {
		return 0, err
	}
	return w.Conn.Write(p)
}

func (w *watched) goOn() error { return w.SetDeadline(w.clock.Now().Add(stallTimeout)) }
