package backup

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ebbdb/ebb/e2e/binary"
)

const s3Bucket = "backups"

// startS3 runs a real S3 server, versitygw, with an empty bucket, and gives those who speak to it what they need in the environment. dir is
// where the bucket's objects are as files.
func startS3(t *testing.T) (dir string) {
	t.Helper()
	temp := t.TempDir()
	program := filepath.Join(temp, "versitygw")
	build := exec.Command("go", "build", "-o", program, "github.com/versity/versitygw/cmd/versitygw")
	build.Dir = "s3server"
	if out, err := build.CombinedOutput(); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("build an S3 server: %v\n%s", err, out)
		}
		t.Skipf("there is no S3 server to test with, for versitygw cannot be built here (its modules have to be fetched once): %v\n%s", err, out)
	}
	dir = filepath.Join(temp, "objects", s3Bucket)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "--port", address, "posix", filepath.Dir(dir))
	cmd.Env = append(os.Environ(), "ROOT_ACCESS_KEY=ebb", "ROOT_SECRET_KEY=ebbebbebb")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	for deadline := time.Now().Add(callLimit); ; time.Sleep(20 * time.Millisecond) {
		if c, err := net.Dial("tcp", address); err == nil {
			_ = c.Close()
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the S3 server does not listen")
		}
	}
	for name, value := range map[string]string{"AWS_ENDPOINT_URL": "http://" + address, "AWS_ACCESS_KEY_ID": "ebb", "AWS_SECRET_ACCESS_KEY": "ebbebbebb",
		"AWS_REGION": "us-east-1", "AWS_SESSION_TOKEN": ""} {
		t.Setenv(name, value)
	}
	return dir
}

// TestS3: all that is done with a folder is done with a bucket, and what somebody has done to objects there is found.
func TestS3(t *testing.T) {
	dir := startS3(t)
	x := &trial{t: t, path: binary.Build(t), data: filepath.Join(t.TempDir(), "data"), repository: "s3://" + s3Bucket + "/shop/one"}
	x.start()
	w := &writer{}
	ctx, stop := context.WithTimeout(t.Context(), 2*time.Second)
	defer stop()
	w.run(ctx, database(t, x.server))
	uri := x.server.URI("directConnection=true")
	first := x.said("backup", "--uri", uri, x.repository)
	second := x.said("backup", "--uri", uri, x.repository)
	if a, b := report.FindStringSubmatch(first), report.FindStringSubmatch(second); a == nil || b == nil || a[2] != a[4] || b[2] == b[4] {
		t.Errorf("the backups say %q and %q", first, second)
	}
	if out := x.said("backup", "list", x.repository); strings.Count(out, "mongodb://"+x.server.Addr) != 2 {
		t.Errorf("the list says %q", out)
	}
	if out := x.said("verify", x.repository); !strings.Contains(out, "2 backups are sound, 0 faults") {
		t.Errorf("verify says %q", out)
	}
	if out := x.said("backup", "prune", x.repository, "--keep", "1"); !strings.Contains(out, "1 backups removed, 1 kept") {
		t.Errorf("prune says %q", out)
	}
	back := filepath.Join(t.TempDir(), "back")
	x.ebb("restore", x.repository, "--dbpath", back)
	restored := binary.Start(t, x.path, "--dbpath", back)
	done, _ := w.books()
	w.compare(t, database(t, restored), done, w.hasSent())

	tables, err := filepath.Glob(filepath.Join(dir, "shop", "one", "objects", "*", "*"))
	if err != nil || len(tables) == 0 {
		t.Fatalf("objects: %v, %v", tables, err)
	}
	for _, path := range tables {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if len(b) > 0 {
			b[len(b)/2] ^= 1
			if err := os.WriteFile(path, b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	if out, err := x.try(t.Context(), "verify", x.repository); err == nil || !strings.Contains(out, "is damaged") {
		t.Errorf("of damaged objects verify says %v, %q", err, out)
	}
	if out, err := x.try(t.Context(), "restore", x.repository, "--dbpath", filepath.Join(t.TempDir(), "bad")); err == nil || !strings.Contains(out, "is damaged") {
		t.Errorf("of damaged objects restore says %v, %q", err, out)
	}
	for place, want := range map[string]string{"s3://nobucket/x": "there is no bucket nobucket", "s3://" + s3Bucket + "/../x": "is not the name of an object",
		"s3://": "is not like s3://bucket/prefix", "s3://" + s3Bucket + "/other": "is not a repository of backups"} {
		if out, err := x.try(t.Context(), "verify", place); err == nil || !strings.Contains(out, want) {
			t.Errorf("%s: %v, %q", place, err, out)
		}
	}
	t.Setenv("AWS_SECRET_ACCESS_KEY", "wrong")
	if out, err := x.try(t.Context(), "verify", x.repository); err == nil || strings.Contains(out, "wrong") {
		t.Errorf("with a wrong key: %v, %q", err, out)
	}
}

func (x *trial) said(args ...string) string {
	x.t.Helper()
	out, err := x.try(x.t.Context(), args...)
	if err != nil {
		x.t.Fatalf("ebb %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return out
}
