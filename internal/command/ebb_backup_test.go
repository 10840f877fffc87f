package command

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/checkpoint"
)

// backups is a client that copies a checkpoint.
type backups struct {
	*harness
}

func (b backups) ask(format string, args ...any) bson.Doc {
	b.t.Helper()
	return b.send(b.t.Context(), "1", "admin", bson.MustDoc(fmt.Sprintf(format, args...))).Body
}

func (b backups) begin() string {
	b.t.Helper()
	reply := b.ask(`{ebbBackup: "begin"}`)
	if !reply.Lookup("ok").Truthy() {
		b.t.Fatal(reply)
	}
	return reply.Lookup("id").Str()
}

func (b backups) code(format string, args ...any) string {
	b.t.Helper()
	if name := b.ask(format, args...).Lookup("codeName"); name.Type == bson.TypeString {
		return name.Str()
	}
	return ""
}

// TestBackupFilesAreHandedOut reads all files of a checkpoint in pieces, while the store goes on.
func TestBackupFilesAreHandedOut(t *testing.T) {
	notOnTiKV(t, "there are no checkpoints over TiKV")
	b := backups{newHarness(t)}
	b.send(t.Context(), "1", "test", bson.MustDoc("{insert: 'c', documents: [{_id: 1}]}"))
	id := b.begin()
	b.send(t.Context(), "1", "test", bson.MustDoc("{insert: 'c', documents: [{_id: 2}]}"))
	files := b.ask(`{ebbBackup: "files", id: %q}`, id)
	if files.Lookup("more").Bool() {
		t.Fatal("there are more files")
	}
	read := 0
	for it := files.Lookup("files").Doc().Iter(); it.Next(); read++ {
		f := it.Value().Doc()
		name, size := f.Lookup("name").Str(), f.Lookup("bytes").Int64()
		var all []byte
		for int64(len(all)) < size {
			_, data := b.ask(`{ebbBackup: "read", id: %q, name: %q, offset: %d, bytes: 1000}`, id, name, len(all)).Lookup("data").Binary()
			if len(data) == 0 {
				t.Fatalf("%s ends at %d of %d", name, len(all), size)
			}
			all = append(all, data...)
		}
		sum := sha256.Sum256(all)
		if _, got := b.ask(`{ebbBackup: "digest", id: %q, name: %q}`, id, name).Lookup("sha256").Binary(); !bytes.Equal(got, sum[:]) {
			t.Errorf("%s has the digest %x, and its bytes %x", name, got, sum)
		}
		if _, data := b.ask(`{ebbBackup: "read", id: %q, name: %q, offset: %d, bytes: 1000}`, id, name, size+5).Lookup("data").Binary(); len(data) != 0 {
			t.Errorf("%s goes on behind its end", name)
		}
	}
	if read < 5 {
		t.Errorf("%d files", read)
	}
	if left := b.ask(`{ebbBackup: "files", id: %q, after: %d}`, id, read).Lookup("files").Doc(); !left.IsEmpty() {
		t.Errorf("behind the last file there is %s", left)
	}
}

// TestBackupRefuses: what is asked wrongly is refused, and reads nothing else than the checkpoint's files.
func TestBackupRefuses(t *testing.T) {
	notOnTiKV(t, "there are no checkpoints over TiKV")
	b := backups{newHarness(t)}
	id := b.begin()
	for command, want := range map[string]string{
		`{ebbBackup: 1}`:                   "TypeMismatch",
		`{ebbBackup: "nothing"}`:           "BadValue",
		`{ebbBackup: "begin", fast: true}`: "IDLUnknownField",
		`{ebbBackup: "files"}`:             "IDLFailedToParse",
		`{ebbBackup: "files", id: "0"}`:    "CursorNotFound",
		`{ebbBackup: "end", id: "0"}`:      "CursorNotFound",
		`{ebbBackup: "read", id: "ID", name: "../../etc/passwd", offset: 0, bytes: 10}`:  "NoSuchKey",
		`{ebbBackup: "read", id: "ID", name: "EBB-FORMAT", offset: -1, bytes: 10}`:       "BadValue",
		`{ebbBackup: "read", id: "ID", name: "EBB-FORMAT", offset: 0, bytes: 100000000}`: "BadValue",
		`{ebbBackup: "read", id: "ID", name: "EBB-FORMAT", offset: 0, bytes: 0}`:         "BadValue",
		`{ebbBackup: "digest", id: "ID", name: "EBB-FORMAT/../EBB-SYNCED"}`:              "NoSuchKey",
		`{ebbBackup: "digest", id: "ID"}`:                                                "IDLFailedToParse",
	} {
		doc := bson.MustDoc(command)
		if got := doc.Lookup("id"); got.Type == bson.TypeString && got.Str() == "ID" {
			doc = bson.MustDoc(string(bytes.ReplaceAll([]byte(command), []byte("ID"), []byte(id))))
		}
		reply := b.send(t.Context(), "1", "admin", doc).Body
		if got := reply.Lookup("codeName"); got.Type != bson.TypeString || got.Str() != want {
			t.Errorf("%s: %s, want %s", command, reply, want)
		}
	}
	if got := b.send(t.Context(), "1", "test", bson.MustDoc(`{ebbBackup: "begin"}`)).Body.Lookup("codeName").Str(); got != "Unauthorized" {
		t.Errorf("in another database: %s", got)
	}
}

// TestBackupLease: there are no more checkpoints than there may be, and one that nobody uses ends by itself.
func TestBackupLease(t *testing.T) {
	notOnTiKV(t, "there are no checkpoints over TiKV")
	b := backups{newHarness(t)}
	used, idle := b.begin(), b.begin()
	if got := b.code(`{ebbBackup: "begin"}`); got != "ConflictingOperationInProgress" {
		t.Fatalf("one too many: %s", got)
	}
	if n := b.ask(`{ebbBackup: "list"}`).Lookup("checkpoints").Doc().Count(); n != checkpoint.MaxOpen {
		t.Fatalf("%d are listed", n)
	}
	b.clock.Advance(checkpoint.Lease / 2)
	if got := b.code(`{ebbBackup: "renew", id: %q}`, used); got != "" {
		t.Fatal(got)
	}
	b.clock.Advance(checkpoint.Lease / 2)
	b.server.endIdle()
	if got := b.code(`{ebbBackup: "renew", id: %q}`, idle); got != "CursorNotFound" {
		t.Errorf("the idle one: %s", got)
	}
	if got := b.code(`{ebbBackup: "renew", id: %q}`, used); got != "" {
		t.Errorf("the one in use: %s", got)
	}
	again := b.begin()
	for _, id := range []string{used, again} {
		if got := b.code(`{ebbBackup: "end", id: %q}`, id); got != "" {
			t.Error(got)
		}
	}
	if n := b.ask(`{ebbBackup: "list"}`).Lookup("checkpoints").Doc().Count(); n != 0 {
		t.Errorf("%d are left", n)
	}
}
