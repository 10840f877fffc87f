package command

import (
	"slices"
	"strings"
	"sync/atomic"

	"github.com/ebbdb/ebb/internal/auth/scram"
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/parameter"
)

// The parameters about logging in.
const (
	mechanismsName       = "authenticationMechanisms"
	iterationsName       = "scramIterationCount"
	iterationsSHA256Name = "scramSHA256IterationCount"
	localhostBypassName  = "enableLocalhostAuthBypass"
)

// addLogin enters them.
func addLogin(r *parameter.Registry) {
	addMechanisms(r)
	parameter.NewInt(r, iterationsName, parameter.Both, 10_000, scram.MinIterations, scram.MaxIterations, false)
	parameter.NewInt(r, iterationsSHA256Name, parameter.Both, 15_000, scram.MinIterations, scram.MaxIterations, false)
	parameter.NewBool(r, localhostBypassName, parameter.Startup, true)
}

// iterations is how often a password is hashed for a mechanism's credentials.
func (s *Server) iterations(mechanism string) int {
	if mechanism == scram.SHA1 {
		return int(s.setting(iterationsName))
	}
	return int(s.setting(iterationsSHA256Name))
}

// addMechanisms enters the list of mechanisms by which somebody may log in, given by their names with commas between them.
func addMechanisms(r *parameter.Registry) {
	usual := append([]string{x509Mechanism}, scram.Mechanisms()...)
	known := append([]string{plainMechanism}, usual...)
	var offered atomic.Pointer[bson.Value]
	set := func(names []string) error {
		vs := make([]bson.Value, 0, len(names))
		for _, name := range names {
			if !slices.Contains(known, name) {
				return mongoerr.New(mongoerr.BadValue, "Invalid value for parameter %s: there is no mechanism '%s'", mechanismsName, name)
			}
			vs = append(vs, bson.String(name))
		}
		list := bson.ArrayOf(vs...)
		offered.Store(&list)
		return nil
	}
	_ = set(usual)
	r.Add(&parameter.Parameter{Name: mechanismsName, When: parameter.Startup,
		Get: func() bson.Value { return *offered.Load() },
		Set: func(v bson.Value) error {
			if v.Type != bson.TypeString {
				return mongoerr.New(mongoerr.BadValue, "Invalid value for parameter %s: %s is no list of names", mechanismsName, v)
			}
			return set(strings.Split(v.Str(), ","))
		}})
}
