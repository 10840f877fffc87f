package role

import (
	"slices"

	p "github.com/ebbdb/ebb/internal/auth/privilege"
)

// What the rows are about.
func cluster(string) p.Resource        { return p.Cluster() }
func anything(string) p.Resource       { return p.Anything() }
func anyNormal(string) p.Resource      { return p.AnyNormal() }
func anyBuckets(string) p.Resource     { return p.AnyBuckets() }
func ownDatabase(db string) p.Resource { return p.Database(db) }

func databaseOf(name string) func(string) p.Resource {
	return func(string) p.Resource { return p.Database(name) }
}

func named(coll string) func(string) p.Resource {
	return func(string) p.Resource { return p.CollectionNamed(coll) }
}

func own(coll string) func(string) p.Resource {
	return func(db string) p.Resource { return p.Collections(db, coll) }
}

func exact(db, coll string) func(string) p.Resource {
	return func(string) p.Resource { return p.Collections(db, coll) }
}

// The sets of actions that several rows share. Our own stand where those of MongoDB do that are next to them.
func reading() []p.Action {
	return []p.Action{p.ChangeStream, p.CollStats, p.DBHash, p.DBStats, p.Find, p.KillCursors, p.ListCollections, p.ListIndexes, p.ListSearchIndexes,
		p.PlanCacheRead, p.ReadExpiry}
}

func writing() []p.Action {
	return append(reading(), p.CleanupStructuredEncryptionData, p.CompactStructuredEncryptionData, p.ConvertToCapped, p.CreateCollection, p.CreateIndex,
		p.CreateSearchIndexes, p.DropCollection, p.DropIndex, p.DropSearchIndex, p.Insert, p.Remove, p.RenameCollectionSameDB, p.Update, p.UpdateSearchIndex)
}

func administeringUsers() []p.Action {
	return []p.Action{p.ChangeCustomData, p.ChangePassword, p.CreateUser, p.CreateRole, p.DropUser, p.DropRole, p.GrantRole, p.RevokeRole,
		p.SetAuthenticationRestriction, p.ViewUser, p.ViewRole}
}

func administeringDatabases() []p.Action {
	return []p.Action{p.Analyze, p.BypassDocumentValidation, p.CollMod, p.CollStats, p.Compact, p.ConvertToCapped, p.CreateCollection, p.DBStats,
		p.DropCollection, p.DropDatabase, p.DropIndex, p.DropSearchIndex, p.CreateIndex, p.CreateSearchIndexes, p.EnableProfiler, p.ListCollections,
		p.ListIndexes, p.ListSearchIndexes, p.UpdateSearchIndex, p.PlanCacheIndexFilter, p.PlanCacheRead, p.PlanCacheWrite, p.ReIndex,
		p.RenameCollectionSameDB, p.StorageDetails, p.Validate, p.ReadExpiry, p.ChangeTTL, p.ForceTTL}
}

func administeringProfiles() []p.Action {
	return append(reading(), p.ConvertToCapped, p.CreateCollection, p.DropCollection)
}

func readingWithIndexes() []p.Action {
	return append(reading(), p.CreateIndex, p.CreateSearchIndexes, p.DropIndex, p.DropSearchIndex)
}

func monitoring() []p.Action {
	return []p.Action{p.CollStats, p.DBStats, p.GetDatabaseVersion, p.GetShardVersion, p.IndexStats, p.ReadExpiry}
}

func managing() []p.Action {
	return []p.Action{p.AnalyzeShardKey, p.ConfigureQueryAnalyzer, p.ClearJumboFlag, p.SplitChunk, p.MoveChunk, p.MoveCollection, p.EnableSharding,
		p.SplitVector, p.RefineCollectionShardKey, p.ReshardCollection}
}

func restoring() []p.Action {
	return []p.Action{p.BypassDocumentValidation, p.CollMod, p.ConvertToCapped, p.CreateCollection, p.CreateIndex, p.CreateSearchIndexes, p.DropCollection,
		p.Insert, p.UpdateSearchIndex}
}

// rows is the built-in roles of MongoDB 8.2.
func rows() []builtin {
	return slices.Concat(databaseRoles(), anyDatabaseRoles(), clusterRoles(), backupRoles(), superRoles())
}

func databaseRoles() []builtin {
	return []builtin{
		{name: "read", grants: []grant{{ownDatabase, reading()}, {own("system.js"), reading()}}},
		{name: "readWrite", grants: []grant{{ownDatabase, writing()}, {own("system.js"), writing()}}},
		{name: "userAdmin", grants: []grant{{ownDatabase, administeringUsers()}}},
		{name: "dbAdmin", grants: []grant{
			{ownDatabase, append(administeringDatabases(), p.ConfigureQueryAnalyzer)},
			{own("system.profile"), administeringProfiles()},
		}},
		{name: "dbOwner", inherits: []string{"readWrite", "dbAdmin", "userAdmin"}},
		{name: "enableSharding", grants: []grant{{anyNormal, []p.Action{p.AnalyzeShardKey, p.EnableSharding, p.MoveCollection, p.RefineCollectionShardKey,
			p.ReshardCollection}}}},
	}
}

func anyDatabaseRoles() []builtin {
	listing := []p.Action{p.ListDatabases}
	return []builtin{
		{name: "readAnyDatabase", adminOnly: true, grants: []grant{
			{anyNormal, reading()}, {cluster, listing}, {named("system.js"), reading()}, {anyBuckets, reading()},
		}},
		{name: "readWriteAnyDatabase", adminOnly: true, inherits: []string{"readAnyDatabase"}, grants: []grant{
			{anyNormal, writing()}, {named("system.js"), writing()}, {anyBuckets, writing()},
		}},
		{name: "userAdminAnyDatabase", adminOnly: true, grants: []grant{
			{anyNormal, append(administeringUsers(), p.ListCachedAndActiveUsers)},
			{databaseOf("local"), administeringUsers()},
			{databaseOf("config"), administeringUsers()},
			{cluster, []p.Action{p.ListDatabases, p.AuthSchemaUpgrade, p.InvalidateUserCache, p.ViewUser}},
			{exact("admin", "system.users"), readingWithIndexes()},
			{exact("admin", "system.roles"), readingWithIndexes()},
			{named("system.users"), reading()},
			{exact("admin", "system.version"), reading()},
			{exact("admin", "system.backup_users"), reading()},
		}},
		{name: "dbAdminAnyDatabase", adminOnly: true, grants: []grant{
			{cluster, []p.Action{p.ListDatabases, p.ApplyOps}},
			{anyNormal, append(administeringDatabases(), p.ConfigureQueryAnalyzer)},
			{named("system.profile"), administeringProfiles()},
			{anyBuckets, administeringDatabases()},
		}},
	}
}

func clusterRoles() []builtin {
	finding, changing := []p.Action{p.Find}, []p.Action{p.Insert, p.Update, p.Remove}
	return []builtin{
		{name: "clusterMonitor", adminOnly: true, elsewhere: []inherited{{"read", "config"}, {"read", "local"}}, grants: []grant{
			{cluster, []p.Action{p.ConnPoolStats, p.GetCmdLineOpts, p.GetDefaultRWConcern, p.GetLog, p.GetParameter, p.GetShardMap, p.HostInfo,
				p.ListDatabases, p.ListSampledQueries, p.ListSessions, p.ListShards, p.Netstat, p.OperationMetrics, p.ReplSetGetConfig, p.ReplSetGetStatus,
				p.ServerStatus, p.Top, p.UseUUID, p.Inprog, p.ShardingState, p.AllCollectionStats, p.ShardedDataDistribution, p.ReadExpiry}},
			{anyNormal, monitoring()},
			{databaseOf("config"), monitoring()},
			{exact("config", "system.sessions"), monitoring()},
			{databaseOf("local"), monitoring()},
			{exact("local", "system.replset"), finding},
			{exact("local", "replset.election"), finding},
			{exact("local", "replset.minvalid"), finding},
			{named("system.profile"), finding},
		}},
		{name: "hostManager", adminOnly: true, grants: []grant{
			{cluster, []p.Action{p.ApplicationMessage, p.AuditConfigure, p.Compact, p.ConnPoolSync, p.DropConnections, p.LogRotate, p.OIDReset, p.SetParameter, p.Shutdown,
				p.Touch, p.Unlock, p.FlushRouterConfig, p.Fsync, p.InvalidateUserCache, p.KillAnyCursor, p.KillAnySession, p.Killop, p.ReplSetResizeOplog,
				p.Resync, p.TrafficRecord, p.RotateCertificates, p.OIDCListKeys, p.OIDCRefreshKeys}},
			{anyNormal, []p.Action{p.KillCursors}},
		}},
		{name: "clusterManager", adminOnly: true, elsewhere: []inherited{{"read", "config"}}, grants: []grant{
			{cluster, []p.Action{p.AppendOplogNote, p.ApplicationMessage, p.ReplSetConfigure, p.ReplSetGetConfig, p.ReplSetGetStatus, p.ReplSetStateChange,
				p.Resync, p.AddShard, p.RemoveShard, p.ListSessions, p.ListShards, p.FlushRouterConfig, p.CleanupOrphaned, p.GetDefaultRWConcern,
				p.RunTenantMigration, p.SetDefaultRWConcern, p.SetFeatureCompatibilityVersion, p.SetClusterParameter, p.GetClusterParameter,
				p.SetChangeStreamState, p.GetChangeStreamState, p.QuerySettings, p.QueryStatsRead, p.QueryStatsReadTransformed, p.CheckMetadataConsistency,
				p.TransitionFromDedicatedConfigServer, p.TransitionToDedicatedConfigServer}},
			{anyNormal, managing()},
			{anyBuckets, managing()},
			{databaseOf("config"), managing()},
			{databaseOf("local"), managing()},
			{exact("local", "system.replset"), reading()},
			{anything, []p.Action{p.DBCheck}},
			{exact("local", "system.healthlog"), reading()},
			{databaseOf("config"), changing},
			{databaseOf("local"), changing},
			{exact("local", "replset.election"), changing},
			{exact("local", "replset.minvalid"), changing},
		}},
		{name: "clusterAdmin", adminOnly: true, inherits: []string{"clusterMonitor", "hostManager", "clusterManager"}, grants: []grant{
			{anyNormal, []p.Action{p.DropDatabase}},
			{anything, []p.Action{p.ImportCollection, p.ExportCollection}},
		}},
		{name: "directShardOperations", adminOnly: true, grants: []grant{{cluster, []p.Action{p.IssueDirectShardOperations}}}},
	}
}

func backupRoles() []builtin {
	finding := []p.Action{p.Find}
	return []builtin{
		{name: "__queryableBackup", adminOnly: true, grants: []grant{
			{anything, []p.Action{p.CollStats, p.ListCollections, p.ListIndexes, p.ListSearchIndexes}},
			{anyNormal, finding},
			{anyBuckets, finding},
			{cluster, []p.Action{p.GetParameter, p.ListDatabases, p.UseUUID}},
			{databaseOf("config"), finding},
			{databaseOf("local"), finding},
			{exact("local", "replset.election"), finding},
			{exact("local", "replset.minvalid"), finding},
			{named("system.js"), finding},
			{named("system.users"), finding},
			{named("system.profile"), finding},
			{exact("admin", "system.backup_users"), finding},
			{exact("admin", "system.roles"), finding},
			{exact("admin", "system.version"), finding},
			{exact("config", "settings"), finding},
		}},
		{name: "backup", adminOnly: true, inherits: []string{"__queryableBackup"}, grants: []grant{
			{cluster, []p.Action{p.AppendOplogNote, p.ServerStatus, p.SetUserWriteBlockMode, p.BackupStore}},
			{exact("config", "settings"), []p.Action{p.Insert, p.Update}},
		}},
		{name: "restore", adminOnly: true, grants: []grant{
			{cluster, []p.Action{p.GetParameter, p.ForceUUID, p.UseUUID, p.BypassWriteBlockingMode, p.SetUserWriteBlockMode, p.ApplyOps}},
			{databaseOf("local"), restoring()},
			{databaseOf("config"), restoring()},
			{anyBuckets, restoring()},
			{exact("local", "system.replset"), restoring()},
			{exact("local", "replset.election"), restoring()},
			{exact("local", "replset.minvalid"), restoring()},
			{anything, []p.Action{p.ListCollections}},
			{anyNormal, append(restoring(), administeringUsers()...)},
			{named("system.js"), restoring()},
			{exact("admin", "tempusers"), finding},
			{exact("admin", "temproles"), finding},
			{exact("admin", "system.backup_users"), restoring()},
			{exact("admin", "system.version"), append(restoring(), p.Find)},
			{named("system.users"), append(restoring(), p.Find, p.Update, p.Remove)},
			{exact("admin", "system.roles"), []p.Action{p.CreateIndex}},
		}},
	}
}

func superRoles() []builtin {
	return []builtin{
		{name: "root", adminOnly: true,
			inherits: []string{"clusterAdmin", "userAdminAnyDatabase", "dbAdminAnyDatabase", "readWriteAnyDatabase", "backup", "restore", "directShardOperations"},
			grants: []grant{
				{anything, []p.Action{p.Validate}},
				{cluster, []p.Action{p.UseTenant}},
				{exact("config", "system.preimages"), []p.Action{p.Find, p.Remove}},
				{exact("config", "system.change_collection"), []p.Action{p.Find, p.Insert, p.Remove, p.Update}},
			}},
		{name: "__system", adminOnly: true, grants: []grant{{anything, []p.Action{p.AnyAction}}}},
	}
}
