package place

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// scheme is of places that are buckets.
const scheme = "s3://"

// IsBucket says whether a place is a bucket, by its name.
func IsBucket(name string) bool { return strings.HasPrefix(name, scheme) }

// Access says how a bucket is reached. Who asks is told by the environment (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN), by the
// files that other programs for S3 use, or by the machine's role.
type Access struct {
	// Endpoint is a URL; "" is Amazon's.
	Endpoint, Region string
	// PathStyle has the bucket's name in the path and not in the host's name. Where Endpoint is given it is there in any case, unless it is Amazon's.
	PathStyle bool
	// HostStyle has it in the host's name, which some stores want.
	HostStyle bool
}

// amazon is the endpoint that there is without another.
const amazon = "https://s3.amazonaws.com"

const (
	// partBytes is how large the parts are in which large objects are sent.
	partBytes = 16 << 20
	// maxObjectBytes is the largest that goes by so many parts as there may be.
	maxObjectBytes = 10_000 * partBytes
)

// Bucket is a place in an object store that speaks S3.
type Bucket struct {
	client         *minio.Client
	bucket, prefix string
}

// OpenBucket opens s3://bucket/prefix. The bucket must be there.
func OpenBucket(ctx context.Context, name string, a Access) (*Bucket, error) {
	u, err := url.Parse(name)
	if err != nil || u.Scheme != "s3" || u.Host == "" || u.RawQuery != "" || u.User != nil || u.Fragment != "" {
		return nil, fmt.Errorf("%q is not like s3://bucket/prefix", withoutPassword(u, name))
	}
	b := &Bucket{bucket: u.Host, prefix: strings.Trim(u.Path, "/")}
	if b.prefix != "" {
		if err := CheckName(b.prefix); err != nil {
			return nil, fmt.Errorf("the prefix in %q: %w", name, err)
		}
		b.prefix += "/"
	}
	if b.client, err = dial(a); err != nil {
		return nil, err
	}
	if err := b.look(ctx); err != nil {
		return nil, err
	}
	return b, nil
}

// look looks whether the bucket can be read. It lists it, for what is wrong is said in an answer's body, and one to HEAD has none.
func (b *Bucket) look(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // which ends the listing
	first, ok := <-b.client.ListObjects(ctx, b.bucket, minio.ListObjectsOptions{Prefix: b.prefix, Recursive: true, MaxKeys: 1})
	switch {
	case !ok:
		return context.Cause(ctx)
	case first.Err == nil:
		return nil
	case minio.ToErrorResponse(first.Err).Code == minio.NoSuchBucket:
		return fmt.Errorf("there is no bucket %s at %s%s", b.bucket, b.client.EndpointURL(), b.twice())
	}
	return fmt.Errorf("look at the bucket %s at %s%s: %w%s", b.bucket, b.client.EndpointURL(), b.anonymously(), first.Err, b.twice())
}

// twice says so where the endpoint may be the bucket's and not the store's.
func (b *Bucket) twice() string {
	if !strings.HasPrefix(b.client.EndpointURL().Host, b.bucket+".") {
		return ""
	}
	return "; an endpoint is the store's, and this one begins with the bucket's name: leave that out, and have the bucket in the host's name, if it is the bucket's own address"
}

// anonymously says so where nobody is named who asks.
func (b *Bucket) anonymously() string {
	if who, err := b.client.GetCreds(); err != nil || !who.SignerType.IsAnonymous() {
		return ""
	}
	return " without credentials, for none were found"
}

// withoutPassword is an address as it may be shown.
func withoutPassword(u *url.URL, address string) string {
	switch {
	case u != nil:
		return u.Redacted()
	case strings.Contains(address, "@"):
		return "…" + address[strings.LastIndexByte(address, '@'):]
	}
	return address
}

func dial(a Access) (*minio.Client, error) {
	endpoint := a.Endpoint
	if endpoint == "" {
		endpoint = amazon
	}
	u, err := url.Parse(endpoint)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || strings.Trim(u.Path, "/") != "" || u.User != nil {
		return nil, fmt.Errorf("the endpoint %q is not like https://host:port, without user and password", withoutPassword(u, endpoint))
	}
	lookup := minio.BucketLookupAuto
	switch {
	case a.PathStyle:
		lookup = minio.BucketLookupPath
	case a.HostStyle:
		lookup = minio.BucketLookupDNS
	}
	over, err := transport(u.Scheme == "https")
	if err != nil {
		return nil, err
	}
	return minio.New(u.Host, &minio.Options{Secure: u.Scheme == "https", Region: a.Region, BucketLookup: lookup, Transport: over,
		Creds: credentials.NewChainCredentials([]credentials.Provider{&credentials.EnvAWS{}, &credentials.FileAWSCredentials{}, &credentials.IAM{Client: roleClient()}})})
}

// roleTimeout is how long one answer of what tells the machine's role may take. Where there is none, its address may be silent.
const roleTimeout = 10 * time.Second

// roleClient asks what tells the machine's role.
func roleClient() *http.Client { return &http.Client{Timeout: roleTimeout} }

// String is Place's.
func (b *Bucket) String() string { return strings.TrimSuffix(scheme+b.bucket+"/"+b.prefix, "/") }

// missing makes the error of what is not there the one that says so.
func missing(name string, err error) error {
	switch minio.ToErrorResponse(err).Code {
	case "NoSuchKey", "NotFound":
		return fmt.Errorf("%s: %w", name, ErrNotFound)
	}
	return err
}

// Put is Place's. An object store shows an object when it is whole. What r fails with ends the request before that.
func (b *Bucket) Put(ctx context.Context, name string, r io.Reader, bytes int64) error {
	if err := CheckName(name); err != nil {
		return err
	}
	if bytes > maxObjectBytes {
		return fmt.Errorf("%s has %d bytes, and an object in a bucket %d at most", name, bytes, int64(maxObjectBytes))
	}
	o := minio.PutObjectOptions{ContentType: "application/octet-stream", PartSize: partBytes, SendContentMd5: true}
	o.DisableContentSha256 = bytes == 0 // over plain HTTP the client would sign it in chunks, and send it without a length
	_, err := b.client.PutObject(ctx, b.bucket, b.prefix+name, &exact{r: r, left: bytes}, bytes, o)
	if err != nil {
		return fmt.Errorf("write %s to %s: %w", name, b, err)
	}
	return nil
}

// exact reads so many bytes. It is no io.ReaderAt, so that they are read once and in order. What r fails with is given alone and under another
// error: the client passes over one that comes with the last byte, which may say that all before it is wrong, and takes some for the end.
type exact struct {
	r    io.Reader
	left int64
}

func (e *exact) Read(p []byte) (int, error) {
	n, err := e.r.Read(p[:min(int64(len(p)), max(e.left, 1))])
	e.left -= int64(n)
	if err != nil && (err != io.EOF || e.left > 0) {
		return 0, fmt.Errorf("read what is to be written, of which %d bytes are left: %w", e.left, err)
	}
	return n, err
}

// Get is Place's.
func (b *Bucket) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	d := &download{ctx: ctx, bucket: b, name: name}
	if err := d.open(); err != nil {
		return nil, err
	}
	return d, nil
}

// Stat is Place's.
func (b *Bucket) Stat(ctx context.Context, name string) (Object, error) {
	if err := CheckName(name); err != nil {
		return Object{}, err
	}
	o, err := b.client.StatObject(ctx, b.bucket, b.prefix+name, minio.StatObjectOptions{})
	if err != nil {
		return Object{}, missing(name, err)
	}
	return Object{Name: name, Bytes: o.Size, Written: o.LastModified}, nil
}

// List is Place's.
func (b *Bucket) List(ctx context.Context, prefix string, each func(Object) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // which ends the listing
	for o := range b.client.ListObjects(ctx, b.bucket, minio.ListObjectsOptions{Prefix: b.prefix + prefix, Recursive: true}) {
		if o.Err != nil {
			return fmt.Errorf("list %s: %w", b, o.Err)
		}
		name, ok := strings.CutPrefix(o.Key, b.prefix)
		if !ok || CheckName(name) != nil {
			continue
		}
		if err := each(Object{Name: name, Bytes: o.Size, Written: o.LastModified}); err != nil {
			return err
		}
	}
	return context.Cause(ctx)
}

// Any is Place's. An object with the name of the prefix alone is what programs make for a folder.
func (b *Bucket) Any(ctx context.Context) (string, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // which ends the listing
	for o := range b.client.ListObjects(ctx, b.bucket, minio.ListObjectsOptions{Prefix: b.prefix, Recursive: true, MaxKeys: 2}) {
		if o.Err != nil {
			return "", fmt.Errorf("list %s: %w", b, o.Err)
		}
		if o.Key != b.prefix {
			return o.Key, nil
		}
	}
	return "", context.Cause(ctx)
}

// Delete is Place's.
func (b *Bucket) Delete(ctx context.Context, name string) error {
	if err := CheckName(name); err != nil {
		return err
	}
	err := b.client.RemoveObject(ctx, b.bucket, b.prefix+name, minio.RemoveObjectOptions{})
	if err = missing(name, err); errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}

// Clean is Place's.
func (b *Bucket) Clean(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for u := range b.client.ListIncompleteUploads(ctx, b.bucket, b.prefix, true) {
		if u.Err != nil {
			return fmt.Errorf("list what is left of writes to %s: %w", b, u.Err)
		}
		if err := b.client.RemoveIncompleteUpload(ctx, b.bucket, u.Key); err != nil {
			return err
		}
	}
	return nil
}
