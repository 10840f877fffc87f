package command

import (
	"github.com/ebbdb/ebb/internal/auth/privilege"
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

func shutdownCommands() []*Command {
	return []*Command{
		{Name: "shutdown", Needs: Needs{OnCluster: actions(privilege.Shutdown)}, Doc: "Ends the server.", AdminOnly: true, Run: shutdown},
		{Name: "rotateCertificates", Needs: Needs{OnCluster: actions(privilege.RotateCertificates)}, Doc: "Reads the certificates anew.", AdminOnly: true, Run: rotateCertificates},
		{Name: "features", Needs: Needs{Nothing: true}, Doc: "Says what the build can do.", Run: features},
	}
}

func shutdown(op *Op) (bson.Doc, error) {
	a := op.Args
	a.Ignore(op.Name())
	a.SafeBool("force", false)
	a.Int("timeoutSecs")
	if err := a.Done(); err != nil {
		return nil, err
	}
	if !op.Conn.isLocal() {
		return nil, mongoerr.New(mongoerr.Unauthorized, "shutdown must run from localhost when running db without auth")
	}
	if op.Shutdown == nil {
		return nil, mongoerr.New(mongoerr.CommandNotSupported, "this server is ended by the program that it is embedded in")
	}
	op.Log.Info("Shutdown command received", "remote", op.Conn.Remote)
	op.Close = true
	if !op.shutDown.Swap(true) {
		op.tell("shutdown", bson.EmptyDoc)
	}
	op.Shutdown()
	return bson.EmptyDoc, nil
}

func features(op *Op) (bson.Doc, error) {
	op.Args.Ignore(op.Name(), "oidReset")
	if err := op.Args.Done(); err != nil {
		return nil, err
	}
	return bson.Build().Object("js").Bool("utf8", true).End().Int32("oidMachine", 0).Doc(), nil
}
