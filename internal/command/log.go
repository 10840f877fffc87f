package command

import (
	"fmt"

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
	if v.Type == bson.TypeString && v.Str() != "server" {
		return nil, mongoerr.New(mongoerr.NoSuchKey, "Unknown log type for rotate: %s", v.Str())
	}
	op.Log.Info("Log rotation initiated")
	if op.RotateLog == nil {
		return bson.EmptyDoc, nil
	}
	if err := op.RotateLog(); err != nil {
		return nil, mongoerr.New(mongoerr.FileRenameFailed, "%s", fmt.Sprint("Log rotation failed: ", err))
	}
	return bson.EmptyDoc, nil
}
