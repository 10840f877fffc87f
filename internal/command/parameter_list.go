package command

import (
	"math"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/parameter"
)

// AddParameters enters the parameters that belong to no part of the server alone: what clients ask for and Ebb only
// states, and the verbosity of the log, which is told to verbosity (nil where nobody minds).
func AddParameters(r *parameter.Registry, verbosity func(level int)) {
	addFeatureCompatibility(r)
	addVerbosity(r, verbosity)
	parameter.NewFixed(r, "authSchemaVersion", bson.Int32(5))
	parameter.NewFixed(r, "authenticationMechanisms", bson.ArrayOf())
	parameter.NewFixed(r, "enableTestCommands", bson.False)
	parameter.NewFixed(r, "maxBSONDepth", bson.Int32(180))
	parameter.NewFixed(r, "mongotHost", bson.String(""))
	parameter.NewFixed(r, "searchIndexManagementHostAndPort", bson.String(""))
	parameter.NewBool(r, "quiet", parameter.Both, false)
	parameter.NewBool(r, "allowDiskUseByDefault", parameter.Both, true)
	parameter.NewString(r, "automationServiceDescriptor", parameter.Both, "", 64)
	parameter.NewString(r, "ShardingTaskExecutorPoolReplicaSetMatching", parameter.Both, "automatic", 64)
	parameter.NewInt(r, "KeysRotationIntervalSec", parameter.Startup, 90*24*3600, 1, math.MaxInt32, false)
	parameter.NewInt(r, "cursorTimeoutMillis", parameter.Both, 600_000, 1, math.MaxInt64, true)
	parameter.NewInt(r, "localLogicalSessionTimeoutMinutes", parameter.Startup, sessionMinutes, 1, math.MaxInt32, false)
}
