package command

import (
	"slices"
	"strings"
	"sync/atomic"

	"github.com/ebbdb/ebb/internal/auth/oidc"
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
	roleAccessName       = "enableAccessToUserRoles"
	providersName        = "oidcIdentityProviders"
	quiesceName          = "JWKSMinimumQuiescePeriodSecs"
	separationName       = "enforceUserClusterSeparation"
	certificateRolesName = "allowRolesFromX509Certificates"
)

// addLogin enters them.
func addLogin(r *parameter.Registry) {
	addMechanisms(r)
	parameter.NewInt(r, iterationsName, parameter.Both, 10_000, scram.MinIterations, scram.MaxIterations, false)
	parameter.NewInt(r, iterationsSHA256Name, parameter.Both, 15_000, scram.MinIterations, scram.MaxIterations, false)
	parameter.NewBool(r, localhostBypassName, parameter.Startup, true)
	parameter.NewBool(r, separationName, parameter.Startup, true)
	parameter.NewBool(r, certificateRolesName, parameter.Startup, true)
	addProviders(r)
	parameter.NewInt(r, quiesceName, parameter.Both, 60, 0, maxQuiesceSecs, false)
}

// SettleLogin is called once the parameters in given were set for the start: passwords are hashed no less often for SCRAM-SHA-256 than somebody
// has asked for SCRAM-SHA-1, unless he has asked for both. Members' certificates are those of users only where they are not shown by members.
func SettleLogin(r *parameter.Registry, given map[string]string, members *ClusterAuth) error {
	if !r.Lookup(separationName).Get().Bool() && members.TakesX509() {
		return mongoerr.New(mongoerr.BadValue, "%s can be false only where clusterAuthMode is keyFile", separationName)
	}
	if _, both := given[iterationsSHA256Name]; both {
		return nil
	}
	asked, usual := r.Lookup(iterationsName).Get(), r.Lookup(iterationsSHA256Name)
	if asked.Int32() <= usual.Get().Int32() {
		return nil
	}
	return usual.Set(asked)
}

// iterations is how often a password is hashed for a mechanism's credentials.
func (s *Server) iterations(mechanism string) int {
	if mechanism == scram.SHA1 {
		return int(s.setting(iterationsName))
	}
	return int(s.setting(iterationsSHA256Name))
}

// separatesMembers says whether who has a member's certificate cannot be a user.
func (s *Server) separatesMembers() bool { return s.Params.Lookup(separationName).Get().Bool() }

// maxQuiesceSecs is how long a key that nobody knows is not asked for at most.
const maxQuiesceSecs = 24 * 3600

// addProviders enters the list of who issues tokens by which somebody may log in, a text on the command line.
func addProviders(r *parameter.Registry) {
	none := bson.ArrayOf()
	var believed atomic.Pointer[bson.Value]
	believed.Store(&none)
	set := func(v bson.Value) error {
		if v.Type != bson.TypeArray {
			return mongoerr.New(mongoerr.TypeMismatch, "Invalid value for parameter %s: it is no array", providersName)
		}
		if _, err := oidc.Parse(v.Doc()); err != nil {
			return err
		}
		v = v.Clone()
		believed.Store(&v)
		return nil
	}
	r.Add(&parameter.Parameter{Name: providersName, When: parameter.Startup, Set: set,
		Get: func() bson.Value { return *believed.Load() },
		Parse: func(text string) error {
			v, err := bson.Parse(text)
			if err != nil {
				return mongoerr.New(mongoerr.FailedToParse, "Invalid value for parameter %s: %v", providersName, err)
			}
			return set(v)
		}})
}

// addMechanisms enters the list of mechanisms by which somebody may log in, given by their names with commas between them.
func addMechanisms(r *parameter.Registry) {
	usual := append([]string{x509Mechanism}, scram.Mechanisms()...)
	known := append([]string{plainMechanism, oidcMechanism}, usual...)
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
