package command

import (
	"math"
	"time"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/cursor"
	"github.com/ebbdb/ebb/internal/parameter"
	"github.com/ebbdb/ebb/internal/session"
	"github.com/ebbdb/ebb/internal/storage/past"
)

// maxMillis is the longest time that a duration holds.
const maxMillis = math.MaxInt64 / int64(time.Millisecond)

// AddParameters enters the parameters that belong to no part of the server alone: what clients ask for and Ebb only
// states, and the verbosity of the log, which is told to verbosity (nil where nobody minds).
func AddParameters(r *parameter.Registry, verbosity func(level int)) {
	addFeatureCompatibility(r)
	addVerbosity(r, verbosity)
	parameter.NewFixed(r, "authSchemaVersion", bson.Int32(authSchemaVersion))
	addLogin(r)
	addBuildInfo(r)
	addQueryStats(r)
	parameter.NewBool(r, auditSuccessName, parameter.Both, false)
	parameter.NewBool(r, roleAccessName, parameter.Both, true)
	parameter.NewBool(r, "enableTestCommands", parameter.Startup, false)
	parameter.NewBool(r, requireAPIName, parameter.Both, false)
	parameter.NewBool(r, acceptAPI2Name, parameter.Both, false)
	parameter.NewFixed(r, "maxBSONDepth", bson.Int32(180))
	parameter.NewFixed(r, "mongotHost", bson.String(""))
	parameter.NewFixed(r, "searchIndexManagementHostAndPort", bson.String(""))
	parameter.NewBool(r, "notablescan", parameter.Both, false)
	parameter.NewBool(r, "quiet", parameter.Both, false)
	parameter.NewBool(r, "allowDiskUseByDefault", parameter.Both, true)
	parameter.NewString(r, "automationServiceDescriptor", parameter.Both, "", 64)
	parameter.NewString(r, "ShardingTaskExecutorPoolReplicaSetMatching", parameter.Both, "automatic", 64)
	parameter.NewInt(r, "KeysRotationIntervalSec", parameter.Startup, 90*24*3600, 1, math.MaxInt32, false)
	parameter.NewInt(r, loadHistoryName, parameter.Both, 60, 0, maxLoadHistorySecs, false)
	parameter.NewInt(r, "cursorTimeoutMillis", parameter.Both, cursor.IdleTimeout.Milliseconds(), 1, maxMillis, true)
	parameter.NewBool(r, endsSessionCursors, parameter.Both, false)
	parameter.NewInt(r, "transactionLifetimeLimitSeconds", parameter.Both, 60, 1, math.MaxInt32, false)
	parameter.NewInt(r, snapshotWindowName, parameter.Both, past.DefaultWindow/1000, 0, math.MaxInt32, false)
	parameter.NewInt(r, "maxTransactionLockRequestTimeoutMillis", parameter.Both, 5, -1, math.MaxInt32, false)
	parameter.NewInt(r, "localLogicalSessionTimeoutMinutes", parameter.Startup, int64(session.Timeout/time.Minute), 1, math.MaxInt32, false)
}

// endsSessionCursors is whether cursors that are idle end while their session lives.
const endsSessionCursors = "enableTimeoutOfInactiveSessionCursors"

// setting is the value of a parameter that is a whole number.
func (s *Server) setting(name string) int64 {
	n, _ := s.Params.Lookup(name).Get().AsInt64()
	return n
}

// sessionMinutes is how long a session lives after its last use.
func (s *Server) sessionMinutes() int32 { return int32(s.setting("localLogicalSessionTimeoutMinutes")) }

// spills says whether stages may use the disk when a command does not say.
func (s *Server) spills() bool { return s.diskUse.Get().Bool() }
