package command

import (
	"slices"
	"sync/atomic"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/parameter"
)

// ClusterAuthMode is a way in which members show that they are such. Each but the first can be gone on from to the next while the server runs.
type ClusterAuthMode int32

const (
	// ClusterAuthNone: they show nothing.
	ClusterAuthNone ClusterAuthMode = iota
	// ClusterAuthKeyFile: they show that they know a key.
	ClusterAuthKeyFile
	// ClusterAuthSendKeyFile: they show that they know a key, and take a certificate as well.
	ClusterAuthSendKeyFile
	// ClusterAuthSendX509: they show their certificates, and take a key as well.
	ClusterAuthSendX509
	// ClusterAuthX509: they show their certificates.
	ClusterAuthX509
)

// clusterAuthModes are the modes by their number.
func clusterAuthModes() []string {
	return []string{"undefined", "keyFile", "sendKeyFile", "sendX509", "x509"}
}

// ClusterAuth is the way in which members show that they are such, as it is at the moment. A nil one is ClusterAuthNone. Who is known already as a
// member stays so until the connection ends.
type ClusterAuth struct{ mode atomic.Int32 }

// NewClusterAuth begins with a mode.
func NewClusterAuth(m ClusterAuthMode) *ClusterAuth {
	a := &ClusterAuth{}
	a.mode.Store(int32(m))
	return a
}

func (a *ClusterAuth) now() ClusterAuthMode {
	if a == nil {
		return ClusterAuthNone
	}
	return ClusterAuthMode(a.mode.Load())
}

// IsAsked says whether others have to show that they are members.
func (a *ClusterAuth) IsAsked() bool { return a.now() != ClusterAuthNone }

// TakesKey says whether a key is taken.
func (a *ClusterAuth) TakesKey() bool {
	now := a.now()
	return now >= ClusterAuthKeyFile && now <= ClusterAuthSendX509
}

// TakesX509 says whether a certificate is taken.
func (a *ClusterAuth) TakesX509() bool { return a.now() >= ClusterAuthSendKeyFile }

// SendsX509 says whether the server shows its certificate.
func (a *ClusterAuth) SendsX509() bool { return a.now() >= ClusterAuthSendX509 }

// illegalClusterAuth is MongoDB's code for a step that is not to the next mode.
const illegalClusterAuth = 5579202

// AddClusterAuth enters the parameter that goes from one mode to the next. tlsMode is that of TLS: certificates are shown where members are called over it.
func AddClusterAuth(r *parameter.Registry, a *ClusterAuth, tlsMode *atomic.Int32) {
	r.Add(&parameter.Parameter{Name: "clusterAuthMode", When: parameter.Runtime,
		Get: func() bson.Value { return bson.String(clusterAuthModes()[a.now()]) },
		Set: func(v bson.Value) error { return a.raise(v, tlsMode) }})
}

// raise goes from one mode to the next, which is all that MongoDB lets a running server do.
func (a *ClusterAuth) raise(v bson.Value, tlsMode *atomic.Int32) error {
	name := ""
	if v.Type == bson.TypeString {
		name = v.Str()
	}
	modes, now := clusterAuthModes(), a.now()
	next := ClusterAuthMode(slices.Index(modes, name))
	switch {
	case next < ClusterAuthKeyFile:
		return mongoerr.New(mongoerr.BadValue, "Invalid clusterAuthMode '%s'", name)
	case next >= ClusterAuthSendKeyFile && tlsModes()[tlsMode.Load()] != "preferTLS" && tlsModes()[tlsMode.Load()] != "requireTLS":
		return mongoerr.New(mongoerr.BadValue, "Illegal state transition for clusterAuthMode, need to enable SSL for outgoing connections")
	case now == ClusterAuthNone || next != now+1 || !a.mode.CompareAndSwap(int32(now), int32(next)):
		return mongoerr.New(illegalClusterAuth, "Illegal state transition for clusterAuthMode from '%s' to '%s'", modes[now], name)
	}
	return nil
}
