package command

import (
	"maps"
	"slices"
)

// Rows is every command, once, by name.
func Rows() []*Command {
	t := commands()
	var out []*Command
	for _, name := range slices.Sorted(maps.Keys(t)) {
		if t[name].Name == name {
			out = append(out, t[name])
		}
	}
	return out
}

// commands is the table of all commands, a family a file.
func commands() table {
	return newTable(
		insertCommands(), updateCommands(), deleteCommands(), findCommands(), getMoreCommands(), countCommands(), aggregateCommands(), mapReduceCommands(), fileMD5Commands(),
		findAndModifyCommands(), bulkWriteCommands(), explainCommands(),
		helloCommands(), pingCommands(), buildInfoCommands(), hostInfoCommands(), commandLineCommands(), listCommandsCommands(),
		ebbTTLCommands(), ebbBackupCommands(), authenticateCommands(), saslCommands(), oidcCommands(), connectionCommands(), userCommands(), roleCommands(), authStoreCommands(), sessionCommands(), killSessionsCommands(), parameterCommands(), clusterParameterCommands(),
		featureCompatibilityCommands(), logCommands(), auditCommands(), serverStatusCommands(), diagnosticDataCommands(), topCommands(), currentOpCommands(), killOpCommands(),
		fsyncCommands(), autoCompactCommands(), profileCommands(), replicaSetCommands(), applyOpsCommands(), shutdownCommands(),
		dbHashCommands(), transactionCommands(), commitQuorumCommands(), compactEncryptedCommands(),
		createCommands(), dropCommands(), listCollectionsCommands(), listDatabasesCommands(), renameCollectionCommands(), collStatsCommands(), dbStatsCommands(),
		createIndexesCommands(), dropIndexesCommands(), listIndexesCommands(), planCacheCommands(), querySettingsCommands(),
		collModCommands(), validateCommands(), dataSizeCommands(), compactCommands(), cappedCommands(), validateDBMetadataCommands(), searchIndexCommands(),
	)
}
