package command

import (
	"errors"
	"fmt"
	"os"

	"github.com/ebbdb/ebb/internal/audit"
	"github.com/ebbdb/ebb/internal/auth/privilege"
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

func logCommands() []*Command {
	return []*Command{
		{Name: "getLog", Needs: Needs{OnCluster: actions(privilege.GetLog)}, Doc: "Shows the latest lines of the log.", AdminOnly: true, Run: getLog},
		{Name: "logRotate", Needs: Needs{OnCluster: actions(privilege.LogRotate)}, Doc: "Begins a new log file.", AdminOnly: true, Run: logRotate},
	}
}

func getLog(op *Op) (bson.Doc, error) {
	a := op.Args
	a.Required(op.Name())
	name, _ := a.String(op.Name())
	if err := a.Done(); err != nil {
		return nil, err
	}
	var lines []string
	total := 0
	switch name {
	case "*":
		return bson.Build().Strings("names", []string{"global", "startupWarnings"}).Doc(), nil
	case "global":
		if op.RecentLog != nil {
			lines, total = op.RecentLog()
		}
	case "startupWarnings":
		if op.StartupWarnings != nil {
			lines = op.StartupWarnings()
			total = len(lines)
		}
	default:
		return nil, mongoerr.New(mongoerr.OperationFailed, "No log named '%s'", name)
	}
	return bson.Build().Int32("totalLinesWritten", int32(total)).Strings("log", lines).Doc(), nil
}

func logRotate(op *Op) (bson.Doc, error) {
	a := op.Args
	a.Ignore("comment")
	v := a.Value(op.Name())
	if v.Type != bson.TypeString && v.Type != bson.TypeBool && !v.IsNumber() {
		a.Fail(a.wrongType(op.Name(), v.Type, []bson.Type{bson.TypeBool, bson.TypeInt64, bson.TypeInt32, bson.TypeDecimal, bson.TypeDouble, bson.TypeString}))
	}
	if err := a.Done(); err != nil {
		return nil, err
	}
	both := v.Type != bson.TypeString
	own, audited := both || v.Str() == "server", op.Audit != nil && (both || v.Str() == "audit")
	if !own && !audited {
		return nil, mongoerr.New(mongoerr.NoSuchKey, "Unknown log type for rotate: %s", v.Str())
	}
	op.Log.Info("Log rotation initiated")
	var errs []error
	if own && op.RotateLog != nil {
		errs = append(errs, op.RotateLog())
	}
	if audited {
		kept, err := op.Audit.Rotate(op.Clock.Now())
		errs = append(errs, err)
		op.told = append(op.told, op.rotated(op.Conn.auditClient(), op.Now, kept, err))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, mongoerr.New(mongoerr.FileRenameFailed, "%s", fmt.Sprint("Log rotation failed: ", err))
	}
	return bson.EmptyDoc, nil
}

// RotateAudit begins a new file of the audit log, as the signal does that rotates the log.
func (s *Server) RotateAudit() error {
	if s.Audit == nil {
		return nil
	}
	now := s.Clock.Now()
	kept, err := s.Audit.Rotate(now)
	return errors.Join(err, s.write(s.rotated(nil, now.UnixMilli(), kept, err)))
}

// rotated is the event of a rotation of the audit log, which is the first in the new file. Its result is 0 where it has failed, too: as in MongoDB
// the status tells.
func (s *Server) rotated(from *audit.Client, at int64, kept string, err error) audit.Event {
	m := s.theMachine()
	b := bson.Build().Int32("pid", int32(os.Getpid())).Object("osInfo").String("name", m.OSName).String("version", m.OSVersion).End().
		Object("logRotationStatus")
	if err != nil {
		b.String("status", fmt.Sprintf("%s: %v", mongoerr.FileRenameFailed.Name(), err)).String("rotatedLogPath", "").Strings("errors", []string{err.Error()})
	} else {
		b.String("status", "OK").String("rotatedLogPath", kept).Strings("errors", nil)
	}
	return audit.Event{Type: "rotateLog", At: at, From: from, Param: b.End().Doc()}
}
