// Package privilege is what may be done on what: actions, resources, privileges, and the grants that somebody has. It knows
// neither users nor roles, nor which command needs what.
package privilege

import "slices"

// Action is something that one may be allowed to do, by MongoDB's name.
type Action uint8

// The actions of MongoDB 8.2, by name, and after them our own.
const (
	AddShard Action = iota
	AdvanceClusterTime
	AllCollectionStats
	Analyze
	AnalyzeShardKey
	AnyAction // all of them
	AppendOplogNote
	ApplicationMessage
	ApplyOps
	AuditConfigure
	AuthSchemaUpgrade
	BypassDocumentValidation
	BypassWriteBlockingMode
	ChangeCustomData
	ChangeOwnCustomData
	ChangeOwnPassword
	ChangePassword
	ChangeStream
	CheckMetadataConsistency
	CleanupOrphaned
	CleanupStructuredEncryptionData
	ClearJumboFlag
	CollMod
	CollStats
	Compact
	CompactStructuredEncryptionData
	ConfigureQueryAnalyzer
	ConnPoolStats
	ConnPoolSync
	ConvertToCapped
	CPUProfiler
	CreateCollection
	CreateIndex
	CreateRole
	CreateSearchIndexes
	CreateUser
	DBCheck
	DBHash
	DBStats
	DropCollection
	DropConnections
	DropDatabase
	DropIndex
	DropRole
	DropSearchIndex
	DropUser
	EmptyCapped
	EnableProfiler
	EnableSharding
	ExportCollection
	Find
	FlushRouterConfig
	ForceUUID
	Fsync
	GetChangeStreamState
	GetClusterParameter
	GetCmdLineOpts
	GetDatabaseVersion
	GetDefaultRWConcern
	GetLog
	GetParameter
	GetShardMap
	GetShardVersion
	GrantRole
	HostInfo
	Impersonate
	ImportCollection
	IndexStats
	Inprog
	Insert
	Internal
	InvalidateUserCache
	IssueDirectShardOperations
	KillAnyCursor
	KillAnySession
	KillCursors
	Killop
	ListCachedAndActiveUsers
	ListCollections
	ListCursors
	ListDatabases
	ListIndexes
	ListSampledQueries
	ListSearchIndexes
	ListSessions
	ListShards
	LogRotate
	MoveChunk
	MoveCollection
	Netstat
	OIDCListKeys
	OIDCRefreshKeys
	OIDReset
	OperationMetrics
	PlanCacheIndexFilter
	PlanCacheRead
	PlanCacheWrite
	QuerySettings
	QueryStatsRead
	QueryStatsReadTransformed
	RefineCollectionShardKey
	ReIndex
	Remove
	RemoveShard
	RenameCollectionSameDB
	ReplSetConfigure
	ReplSetGetConfig
	ReplSetGetStatus
	ReplSetHeartbeat
	ReplSetResizeOplog
	ReplSetStateChange
	ReshardCollection
	Resync
	RevokeRole
	RotateCertificates
	RunAsLessPrivilegedUser
	RunTenantMigration
	ServerStatus
	SetAuthenticationRestriction
	SetChangeStreamState
	SetClusterParameter
	SetDefaultRWConcern
	SetFeatureCompatibilityVersion
	SetParameter
	SetUserWriteBlockMode
	ShardedDataDistribution
	ShardingState
	Shutdown
	SplitChunk
	SplitVector
	StorageDetails
	Top
	Touch
	TrafficRecord
	TransitionFromDedicatedConfigServer
	TransitionToDedicatedConfigServer
	Unlock
	Update
	UpdateSearchIndex
	UseTenant
	UseUUID
	Validate
	ViewRole
	ViewUser

	// ReadExpiry is to see how expiry stands: ebbTTL, its forecasts and why a document does not expire.
	ReadExpiry
	// ChangeTTL is to change expireAfterSeconds and what belongs to it by collMod, without the right to the rest of collMod.
	ChangeTTL
	// ForceTTL is to change a TTL past the guard against mass expiry, with force.
	ForceTTL
	// BackupStore is to copy the store as a whole, with all that is in it, users and their credentials too.
	BackupStore

	actions int = iota
)

// names are those of the actions, in their order.
var names = [actions]string{
	"addShard", "advanceClusterTime", "allCollectionStats", "analyze", "analyzeShardKey", "anyAction", "appendOplogNote", "applicationMessage", "applyOps",
	"auditConfigure", "authSchemaUpgrade", "bypassDocumentValidation", "bypassWriteBlockingMode", "changeCustomData", "changeOwnCustomData",
	"changeOwnPassword", "changePassword", "changeStream", "checkMetadataConsistency", "cleanupOrphaned", "cleanupStructuredEncryptionData",
	"clearJumboFlag", "collMod", "collStats", "compact", "compactStructuredEncryptionData", "configureQueryAnalyzer", "connPoolStats", "connPoolSync",
	"convertToCapped", "cpuProfiler", "createCollection", "createIndex", "createRole", "createSearchIndexes", "createUser", "dbCheck", "dbHash", "dbStats",
	"dropCollection", "dropConnections", "dropDatabase", "dropIndex", "dropRole", "dropSearchIndex", "dropUser", "emptycapped", "enableProfiler",
	"enableSharding", "exportCollection", "find", "flushRouterConfig", "forceUUID", "fsync", "getChangeStreamState", "getClusterParameter",
	"getCmdLineOpts", "getDatabaseVersion", "getDefaultRWConcern", "getLog", "getParameter", "getShardMap", "getShardVersion", "grantRole", "hostInfo",
	"impersonate", "importCollection", "indexStats", "inprog", "insert", "internal", "invalidateUserCache", "issueDirectShardOperations", "killAnyCursor",
	"killAnySession", "killCursors", "killop", "listCachedAndActiveUsers", "listCollections", "listCursors", "listDatabases", "listIndexes",
	"listSampledQueries", "listSearchIndexes", "listSessions", "listShards", "logRotate", "moveChunk", "moveCollection", "netstat", "oidcListKeys",
	"oidcRefreshKeys", "oidReset", "operationMetrics", "planCacheIndexFilter", "planCacheRead", "planCacheWrite", "querySettings", "queryStatsRead",
	"queryStatsReadTransformed", "refineCollectionShardKey", "reIndex", "remove", "removeShard", "renameCollectionSameDB", "replSetConfigure",
	"replSetGetConfig", "replSetGetStatus", "replSetHeartbeat", "replSetResizeOplog", "replSetStateChange", "reshardCollection", "resync", "revokeRole",
	"rotateCertificates", "runAsLessPrivilegedUser", "runTenantMigration", "serverStatus", "setAuthenticationRestriction", "setChangeStreamState",
	"setClusterParameter", "setDefaultRWConcern", "setFeatureCompatibilityVersion", "setParameter", "setUserWriteBlockMode", "shardedDataDistribution",
	"shardingState", "shutdown", "splitChunk", "splitVector", "storageDetails", "top", "touch", "trafficRecord", "transitionFromDedicatedConfigServer",
	"transitionToDedicatedConfigServer", "unlock", "update", "updateSearchIndex", "useTenant", "useUUID", "validate", "viewRole", "viewUser",
	"readExpiry", "changeTTL", "forceTTL", "backupStore",
}

// String is the action's name.
func (a Action) String() string { return names[a] }

// ActionNamed finds an action by its name.
func ActionNamed(name string) (Action, bool) {
	i := slices.Index(names[:], name)
	return Action(max(i, 0)), i >= 0
}

// Actions is a set of actions.
type Actions [(actions + 63) / 64]uint64

// ActionsOf is the set of those.
func ActionsOf(as ...Action) (s Actions) {
	for _, a := range as {
		s.Add(a)
	}
	return s
}

// AllActions is every action.
func AllActions() (s Actions) {
	for a := range Action(actions) {
		s.Add(a)
	}
	return s
}

// Add adds an action; AnyAction is every one.
func (s *Actions) Add(a Action) {
	if a == AnyAction && !s.Has(a) {
		for i := range s {
			s[i] = ^uint64(0)
		}
	}
	s[a/64] |= 1 << (a % 64)
}

// Has says whether the action is among them.
func (s *Actions) Has(a Action) bool { return s[a/64]&(1<<(a%64)) != 0 }

// AddAll adds those of o.
func (s *Actions) AddAll(o Actions) {
	for i := range s {
		s[i] |= o[i]
	}
}

// Remove takes those of o out.
func (s *Actions) Remove(o Actions) {
	for i := range s {
		s[i] &^= o[i]
	}
}

// Includes says whether all of o are among them.
func (s *Actions) Includes(o Actions) bool {
	for i := range s {
		if o[i]&^s[i] != 0 {
			return false
		}
	}
	return true
}

// IsEmpty says whether there is none.
func (s *Actions) IsEmpty() bool { return *s == Actions{} }

// Names are those of the actions, by the alphabet, as MongoDB shows them: every action is "anyAction" alone.
func (s *Actions) Names() []string {
	if s.Has(AnyAction) {
		return []string{AnyAction.String()}
	}
	var out []string
	for a := range Action(actions) {
		if s.Has(a) {
			out = append(out, a.String())
		}
	}
	slices.Sort(out)
	return out
}
