package command

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/ebbdb/ebb/internal/auth/privilege"
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/checkpoint"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/storage/oplog"
)

const (
	// maxBackupRead is how much of a file one reply has.
	maxBackupRead = 4 << 20
	// maxBackupFiles is how many files one reply lists.
	maxBackupFiles = 20_000
)

func ebbBackupCommands() []*Command {
	return []*Command{{Name: "ebbBackup", Needs: Needs{OnCluster: actions(privilege.BackupStore)}, Doc: "Takes a checkpoint of the store, and hands out its files, for ebb backup.",
		AdminOnly: true, Run: ebbBackup}}
}

// ebbBackup does one step of a backup: its first argument says which.
func ebbBackup(op *Op) (bson.Doc, error) {
	step, _ := op.Args.String(op.Name())
	if op.Checkpoints == nil {
		return nil, mongoerr.New(mongoerr.IllegalOperation, "this server takes no checkpoints")
	}
	switch step {
	case "begin":
		return op.beginBackup()
	case "list":
		return op.listBackups()
	case "files", "digest", "read", "renew", "end":
		return op.stepOfBackup(step)
	}
	if err := op.Args.Err(); err != nil {
		return nil, err
	}
	return nil, mongoerr.New(mongoerr.BadValue, "ebbBackup is \"begin\", \"files\", \"digest\", \"read\", \"renew\", \"end\" or \"list\", not %s", op.Args.Value(op.Name()))
}

// beginBackup takes a checkpoint. What the oplog had last before is in it, and of what it has last afterwards there may be something.
func (op *Op) beginBackup() (bson.Doc, error) {
	if err := op.Args.Done(); err != nil {
		return nil, err
	}
	before := op.Query.Store.LastLogged()
	o, err := op.Checkpoints.Begin(op.Ctx, op.Conn.Remote)
	if err != nil {
		return nil, backupError(err)
	}
	after := op.Query.Store.LastLogged()
	number, millis := o.Last()
	bytes := int64(0)
	for _, f := range o.Files() {
		bytes += f.Bytes
	}
	b := bson.Build().String("id", o.ID).Int64("commit", int64(number)).Date("time", millis).Date("at", max(millis, o.Begun.UnixMilli())).
		String("ebbVersion", op.EbbVersion).Int32("leaseSecs", int32(checkpoint.Lease.Seconds())).
		Int64("files", int64(len(o.Files()))).Int64("bytes", bytes)
	if at, held := op.Query.Store.HeldAt(); held {
		b.Date("heldAt", at)
	}
	if op.Replica != nil {
		appendLogged(b.Object("oplog"), before, after)
		b.End()
	}
	return b.Doc(), nil
}

func appendLogged(b *bson.Builder, from, to oplog.Timestamp) {
	b.Timestamp("from", from.Seconds(), from.Counter()).Timestamp("to", to.Seconds(), to.Counter())
}

func (op *Op) listBackups() (bson.Doc, error) {
	if err := op.Args.Done(); err != nil {
		return nil, err
	}
	b := bson.Build().Array("checkpoints")
	for i, o := range op.Checkpoints.All() {
		number, _ := o.Last()
		b.Object(bson.IndexKey(i)).String("id", o.ID).String("by", o.By).Date("begun", o.Begun.UnixMilli()).Int64("commit", int64(number)).End()
	}
	return b.End().Doc(), nil
}

// stepOfBackup does a step with a checkpoint that is open.
func (op *Op) stepOfBackup(step string) (bson.Doc, error) {
	a := op.Args
	a.Required("id")
	id, _ := a.String("id")
	name, offset, length, after := "", int64(0), int64(0), int64(0)
	switch step {
	case "files":
		after, _ = a.Limit("after")
	case "read":
		a.Required("name", "offset", "bytes")
		offset, _ = a.Limit("offset")
		length, _ = a.IntIn("bytes", 1, maxBackupRead)
		name, _ = a.String("name")
	case "digest":
		a.Required("name")
		name, _ = a.String("name")
	}
	if err := a.Done(); err != nil {
		return nil, err
	}
	if step == "end" {
		return bson.EmptyDoc, backupError(op.Checkpoints.End(id))
	}
	o, done, err := op.Checkpoints.Use(id)
	if err != nil {
		return nil, backupError(err)
	}
	defer done()
	switch step {
	case "files":
		return filesOfBackup(o, after), nil
	case "renew":
		return bson.EmptyDoc, nil
	}
	i := slices.IndexFunc(o.Files(), func(f kv.CheckpointFile) bool { return f.Name == name })
	if i < 0 {
		return nil, mongoerr.New(mongoerr.NoSuchKey, "the checkpoint has no file %q", name)
	}
	if step == "digest" {
		sum, err := op.Checkpoints.Digest(op.Ctx, o, o.Files()[i])
		if err != nil {
			return nil, backupError(err)
		}
		return bson.Build().Binary("sha256", 0, sum[:]).Doc(), nil
	}
	return op.readOfBackup(o, o.Files()[i], offset, length)
}

// filesOfBackup lists files behind the first so many.
func filesOfBackup(o *checkpoint.Open, after int64) bson.Doc {
	files := o.Files()
	rest := files[min(after, int64(len(files))):]
	b := bson.Build().Array("files")
	for i, f := range rest[:min(len(rest), maxBackupFiles)] {
		b.Object(bson.IndexKey(i)).String("name", f.Name).Int64("bytes", f.Bytes).Bool("table", f.Table).End()
	}
	return b.End().Bool("more", len(rest) > maxBackupFiles).Doc()
}

func (op *Op) readOfBackup(o *checkpoint.Open, f kv.CheckpointFile, offset, length int64) (bson.Doc, error) {
	if offset >= f.Bytes {
		return bson.Build().Binary("data", 0, nil).Doc(), nil
	}
	data := make([]byte, min(length, f.Bytes-offset))
	n, err := o.ReadAt(f.Name, data, offset)
	if n < len(data) {
		return nil, fmt.Errorf("read %s of the checkpoint: %w", f.Name, errors.Join(io.ErrUnexpectedEOF, err))
	}
	return bson.Build().Binary("data", 0, data).Doc(), nil
}

// backupError gives what can go wrong its code.
func backupError(err error) error {
	switch {
	case errors.Is(err, checkpoint.ErrBusy):
		return mongoerr.New(mongoerr.ConflictingOperationInProgress, "%d backups are under way, which is as many as there may be: ebbBackup: \"list\" shows them, and one whose client is gone ends by itself within %d seconds",
			checkpoint.MaxOpen, int(checkpoint.Lease.Seconds()))
	case errors.Is(err, checkpoint.ErrGone):
		return mongoerr.New(mongoerr.CursorNotFound, "%v", err)
	case errors.Is(err, checkpoint.ErrUnable):
		return mongoerr.New(mongoerr.IllegalOperation, "%v", err)
	}
	return err
}
