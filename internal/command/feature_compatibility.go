package command

import (
	"strings"
	"sync/atomic"

	"github.com/ebbdb/ebb/internal/auth/privilege"
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/parameter"
)

// The versions whose features can be had.
const (
	fcvName           = "featureCompatibilityVersion"
	latestFCV         = "8.2"
	lastContinuousFCV = "8.1"
	lastLTSFCV        = "8.0"
)

func isFCV(version string) bool {
	return version == latestFCV || version == lastContinuousFCV || version == lastLTSFCV
}

// changesFCV says whether a version may be changed to another. Between the older two there is only the way up, which config servers go.
func changesFCV(from, to string, isFromConfigServer bool) bool {
	return from == latestFCV || to == latestFCV || from == lastLTSFCV && to == lastContinuousFCV && isFromConfigServer
}

func featureCompatibilityCommands() []*Command {
	return []*Command{
		{Name: "setFeatureCompatibilityVersion", Needs: Needs{OnCluster: actions(privilege.SetFeatureCompatibilityVersion)}, Doc: "Says which version's features may be used.", AdminOnly: true, WriteConcern: true,
			Run: setFeatureCompatibilityVersion},
	}
}

// addFeatureCompatibility adds the parameter that shows the version, and that the command alone changes.
func addFeatureCompatibility(r *parameter.Registry) {
	var version atomic.Pointer[bson.Value]
	set := func(v bson.Value) error {
		doc := bson.Build().Value("version", v).Doc().Value()
		version.Store(&doc)
		return nil
	}
	_ = set(bson.String(latestFCV))
	r.Add(&parameter.Parameter{Name: fcvName, Get: func() bson.Value { return *version.Load() }, Set: set})
}

func setFeatureCompatibilityVersion(op *Op) (bson.Doc, error) {
	a := op.Args
	a.Required(op.Name())
	want, _ := a.String(op.Name())
	confirm := a.SafeBool("confirm", false)
	a.SafeBool("downgradeOnDiskChanges", false)
	isFromConfigServer := a.SafeBool("fromConfigServer", false)
	if err := a.Done(); err != nil {
		return nil, err
	}
	if !isFCV(want) {
		return nil, mongoerr.New(4926900, "Invalid feature compatibility version value '%s'; expected '%s' or '%s' or '%s'. See https://docs.mongodb.com/master/release-notes/8.0-compatibility/#feature-compatibility.", want, lastLTSFCV, lastContinuousFCV, latestFCV)
	}
	p := op.Params.Lookup(fcvName)
	if p == nil {
		return nil, mongoerr.New(mongoerr.InternalError, "there is no featureCompatibilityVersion")
	}
	now := p.Get().Doc().Lookup("version").Str()
	if !confirm {
		message := "Once you have downgraded the FCV, if you choose to downgrade the binary version, it will require support assistance. Please re-run this command with 'confirm: true' to acknowledge this and continue with the FCV downgrade."
		if want > now {
			message = "Once you have upgraded to " + want + ", you will not be able to downgrade FCV and binary version without support assistance. Please re-run this command with 'confirm: true' to acknowledge this and continue with the FCV upgrade."
		}
		return nil, mongoerr.New(7369100, "%s", message)
	}
	if want == now {
		return bson.EmptyDoc, nil
	}
	if !changesFCV(now, want, isFromConfigServer) {
		return nil, mongoerr.New(5147403, "cannot set featureCompatibilityVersion to '%s' while featureCompatibilityVersion is '%s'", want, now)
	}
	return bson.EmptyDoc, op.storeVersion(p, strings.Clone(want))
}
