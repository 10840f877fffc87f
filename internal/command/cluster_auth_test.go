package command

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/parameter"
)

// TestClusterAuthMode: each mode goes on to the next alone, and to certificates only where members are called over TLS.
func TestClusterAuthMode(t *testing.T) {
	a, tls, r := NewClusterAuth(ClusterAuthKeyFile), atomic.Int32{}, parameter.NewRegistry(func(string) {})
	AddClusterAuth(r, a, &tls)
	for _, c := range []struct {
		tls         int32
		value, want string
		mode        ClusterAuthMode
	}{
		{2, "x", "2 Invalid clusterAuthMode 'x'", ClusterAuthKeyFile},
		{2, "undefined", "2 Invalid clusterAuthMode 'undefined'", ClusterAuthKeyFile},
		{2, "keyFile", "5579202 Illegal state transition for clusterAuthMode from 'keyFile' to 'keyFile'", ClusterAuthKeyFile},
		{2, "sendX509", "5579202 Illegal state transition for clusterAuthMode from 'keyFile' to 'sendX509'", ClusterAuthKeyFile},
		{0, "sendKeyFile", "2 Illegal state transition for clusterAuthMode, need to enable SSL for outgoing connections", ClusterAuthKeyFile},
		{1, "sendKeyFile", "2 Illegal state transition for clusterAuthMode, need to enable SSL for outgoing connections", ClusterAuthKeyFile},
		{2, "sendKeyFile", "", ClusterAuthSendKeyFile},
		{2, "keyFile", "5579202 Illegal state transition for clusterAuthMode from 'sendKeyFile' to 'keyFile'", ClusterAuthSendKeyFile},
		{3, "sendX509", "", ClusterAuthSendX509},
		{3, "x509", "", ClusterAuthX509},
		{3, "sendX509", "5579202 Illegal state transition for clusterAuthMode from 'x509' to 'sendX509'", ClusterAuthX509},
	} {
		tls.Store(c.tls)
		got := ""
		if _, err := r.Set("clusterAuthMode", bson.String(c.value), parameter.Runtime); err != nil {
			got = fmt.Sprintf("%d %s", mongoerr.From(err).Code, err)
		}
		if got != c.want || a.now() != c.mode {
			t.Errorf("%s: %q and mode %d, want %q and %d", c.value, got, a.now(), c.want, c.mode)
		}
	}
	if err := NewClusterAuth(ClusterAuthNone).raise(bson.String("keyFile"), &tls); !mongoerr.Is(err, illegalClusterAuth) {
		t.Errorf("members that show nothing are asked for a key: %v", err)
	}
	for mode, want := range map[ClusterAuthMode][4]bool{ClusterAuthNone: {}, ClusterAuthKeyFile: {true, true}, ClusterAuthSendKeyFile: {true, true, true},
		ClusterAuthSendX509: {true, true, true, true}, ClusterAuthX509: {true, false, true, true}} {
		a := NewClusterAuth(mode)
		if got := [4]bool{a.IsAsked(), a.TakesKey(), a.TakesX509(), a.SendsX509()}; got != want {
			t.Errorf("mode %d: %v, want %v", mode, got, want)
		}
	}
}
