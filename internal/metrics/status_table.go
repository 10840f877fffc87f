package metrics

// neverCounts is why many fields are left out that MongoDB has.
const neverCounts = "never counts here"

// statusTable says what becomes of the fields of serverStatus. The first row that a field matches holds.
func statusTable() []row {
	gauge := func(path, name, help string, labels ...string) row {
		return row{path: path, figure: figure{"ebb_" + name, help, labels, false}}
	}
	counter := func(path, name, help string, labels ...string) row {
		return row{path: path, figure: figure{"ebb_" + name + "_total", help, labels, true}}
	}
	omit := func(path, why string) row { return row{path: path, omit: why} }
	return []row{
		// The server.
		gauge("uptimeMillis", "uptime_seconds", "How long the server has been up.").times(1e-3),
		omit("uptime", "is uptimeMillis, rounded"),
		omit("uptimeEstimate", "is uptimeMillis, rounded"),
		omit("pid", "names the process"),
		omit("localTime", "is when one looks"),
		omit("ok", "is of the reply"),
		omit("$clusterTime", "is of the reply"),
		omit("operationTime", "is of the reply"),
		omit("featureCompatibilityVersion", "is a version"),
		counter("asserts/user", "user_errors", "Commands that failed."),
		omit("asserts", neverCounts),
		gauge("catalogStats/*", "catalog_entries", "Collections and views, by what they are.", "kind"),

		// Connections and the network.
		gauge("connections/current", "connections", "Connections that are open."),
		gauge("connections/available", "connections_available", "Connections that may be opened beside those that are."),
		gauge("connections/active", "connections_active", "Connections that run an operation."),
		counter("connections/totalCreated", "connections_created", "Connections that were opened."),
		counter("connections/rejected", "connections_rejected", "Connections that were refused because there were too many."),
		omit("connections/threaded", "is connections.current"),
		omit("connections", neverCounts),
		counter("network/bytesIn", "network_received_bytes", "Bytes received from clients, as they travel."),
		counter("network/bytesOut", "network_sent_bytes", "Bytes sent to clients, as they travel."),
		counter("network/numRequests", "network_requests", "Messages received from clients."),
		counter("network/numSlowSSLOperations", "tls_slow_handshakes", "TLS handshakes that took longer than a second."),
		omit("network/physicalBytesIn", "is network.bytesIn"),
		omit("network/physicalBytesOut", "is network.bytesOut"),
		omit("network/numSlowDNSOperations", neverCounts),
		counter("transportSecurity/1.2", "tls_1_2_connections", "Connections over TLS 1.2."),
		counter("transportSecurity/1.3", "tls_1_3_connections", "Connections over TLS 1.3."),
		omit("transportSecurity", neverCounts),
		gauge("security/SSLServerCertificateExpirationDate", "tls_certificate_expiry_timestamp_seconds", "When the certificate of the server ends, as Unix time."),
		omit("security/SSLServerHasCertificateAuthority", "is always true where there is TLS"),
		counter("security/authentication/mechanisms/*/authenticate/received", "logins_begun", "Logins that were begun.", "mechanism"),
		counter("security/authentication/mechanisms/*/authenticate/successful", "logins", "Logins that succeeded.", "mechanism"),
		omit("security/authentication/mechanisms/*/speculativeAuthenticate", "is a part of authenticate"),
		omit("security/authentication/mechanisms/*/clusterAuthenticate", "is a part of authenticate"),
		omit("security/authentication/saslSupportedMechsReceived", "counts a question of drivers"),

		gauge("ebbAudit/enabled", "audit_enabled", "Whether there is an audit log."),
		counter("ebbAudit/events", "audit_events", "Events that were written to the audit log."),
		counter("ebbAudit/filtered", "audit_filtered_events", "Events that its filter has left out."),
		counter("ebbAudit/lost", "audit_lost_events", "Events that could not be written to it."),
		gauge("ebbAudit/failing", "audit_failing", "Whether the last event could not be written."),

		// Operations.
		counter("opcounters/*", "opcounters", "Operations since the start, as MongoDB counts them: documents inserted one by one, updates and deletes by statement.", "type"),
		omit("opcountersRepl", neverCounts),
		counter("opLatencies/*/ops", "operations", "Operations that have ended.", "kind"),
		counter("opLatencies/*/latency", "operation_seconds", "How long those took together.", "kind").times(1e-6),
		omit("opLatencies/*/queryableEncryptionLatencyMicros", neverCounts),
		gauge("globalLock/activeClients/readers", "operations_reading", "Operations under way that do not write."),
		gauge("globalLock/activeClients/writers", "operations_writing", "Operations under way that write."),
		gauge("globalLock/currentQueue/writers", "operations_waiting", "Writes that wait for fsync with lock to end."),
		omit("globalLock/totalTime", "is uptimeMillis"),
		omit("globalLock", "is a sum, or never counts here"),
		omit("locks", "is a sum of opLatencies"),
		counter("metrics/commands/*/total", "commands", "Commands that were run.", "command"),
		counter("metrics/commands/*/failed", "commands_failed", "Commands that failed.", "command"),
		counter("metrics/document/*", "documents", "Documents that operations have returned, inserted, updated and deleted.", "operation"),
		counter("metrics/operation/scanAndOrder", "operations_sorted", "Operations that sorted what no index had in order."),
		counter("metrics/operation/writeConflicts", "write_conflicts", "Writes that met another and were done again."),
		counter("metrics/queryExecutor/scanned", "query_keys_examined", "Index entries that queries have looked at."),
		counter("metrics/queryExecutor/scannedObjects", "query_documents_examined", "Documents that queries have looked at."),
		counter("metrics/cursor/totalOpened", "cursors_opened", "Cursors that were opened."),
		counter("metrics/cursor/timedOut", "cursors_timed_out", "Cursors that nobody used for too long."),
		counter("metrics/cursor/moreThanOneBatch", "cursor_further_batches", "Batches that getMore has fetched."),
		gauge("metrics/cursor/open/total", "cursors_open", "Cursors that are open."),
		gauge("metrics/cursor/open/pinned", "cursors_pinned", "Cursors that are in use."),
		gauge("metrics/cursor/open/noTimeout", "cursors_open_no_timeout", "Open cursors that are never too old."),
		omit("metrics/getLastError", neverCounts),
		omit("metrics/repl", neverCounts),
		counter("metrics/changeStreams/largeEventsFailed", "change_stream_large_events_failed", "Events of change streams that were too large."),
		counter("metrics/changeStreams/largeEventsSplit", "change_stream_large_events_split", "Events of change streams that were split."),
		counter("metrics/changeStreams/showExpandedEvents", "change_streams_expanded", "Change streams that asked for expanded events."),

		// Expiry, of all collections together.
		gauge("metrics/queryStats/cacheSizeEstimateBytes", "query_stats_bytes", "Memory that is taken for what queries of each shape have cost."),
		gauge("metrics/queryStats/maxSizeBytes", "query_stats_max_bytes", "Memory that it may take."),
		gauge("metrics/queryStats/numEntries", "query_stats_entries", "Shapes of queries that are kept."),
		counter("metrics/queryStats/numEvicted", "query_stats_evicted", "Shapes of queries that had to make room for others."),
		counter("metrics/queryStats/numRateLimitedRequests", "query_stats_rate_limited_requests", "Queries that were not counted because there were too many a second."),
		gauge("metrics/ttl/ebb/lagMillis", "ttl_lag_seconds", "For how long the oldest document of all collections has been stored past its deadline.").times(1e-3),
		gauge("metrics/ttl/ebb/backlog", "ttl_backlog_documents", "Documents that have expired and are not deleted yet, counted once for each rule; there are more where ebb_ttl_backlog_is_more is there."),
		gauge("metrics/ttl/ebb/backlogIsMore", "ttl_backlog_is_more", "Whether counting the backlog ended before its end."),
		counter("metrics/ttl/deletedDocuments", "ttl_deleted_documents", "Documents deleted because they had expired."),
		counter("metrics/ttl/deletedKeys", "ttl_deleted_keys", "Index entries deleted with them."),
		counter("metrics/ttl/examinedDocuments", "ttl_examined_documents", "Documents looked at for whether they had expired."),
		counter("metrics/ttl/examinedKeys", "ttl_examined_keys", "Index entries looked at for that."),
		counter("metrics/ttl/durationMicros", "ttl_delete_seconds", "How long deleting them took.").times(1e-6),
		counter("metrics/ttl/invalidTTLIndexSkips", "ttl_invalid_index_skips", "TTL indexes that were skipped because their kind keeps no dates."),
		counter("metrics/ttl/passes", "ttl_passes", "Passes of the TTL monitor."),
		counter("metrics/ttl/subPasses", "ttl_sub_passes", "Sub-passes of the TTL monitor."),
		omit("metrics/ttl/collSubpassesIncreasedPriority", neverCounts),
		gauge("metrics/ttl/ebb/paused", "ttl_paused_collections", "Collections of which deleting is paused (collMod ttlPaused)."),
		gauge("metrics/ttl/ebb/share", "ttl_processor_share", "The share of the processors that sweeps take beside clients at the moment."),
		counter("metrics/ttl/ebb/rests", "ttl_rests", "How often sweeps rested so that clients go first."),
		counter("metrics/ttl/ebb/restMicros", "ttl_rest_seconds", "For how long.").times(1e-6),
		counter("metrics/ttl/ebb/sweeps", "ttl_sweeps", "Sweeps that deleted all that was due as one range."),
		counter("metrics/ttl/ebb/sweptDocuments", "ttl_swept_documents", "Documents that those have deleted."),
		counter("metrics/ttl/ebb/arrangedDocuments", "ttl_arranged_documents", "Documents that were put into the order of expiry."),
		counter("metrics/ttl/ebb/cleanedEntries", "ttl_cleaned_entries", "Dead index entries that were removed."),
		counter("metrics/ttl/ebb/deletedByCommands", "ttl_deleted_by_commands", "Expired documents that were deleted because a TTL was loosened or dropped."),
		counter("metrics/ttl/ebb/keptByCommands", "ttl_kept_by_commands", "Expired documents that were made visible again when a TTL was loosened or dropped."),
		counter("batchedDeletes/batches", "ttl_batches", "Batches in which expired documents were deleted."),
		counter("batchedDeletes/docs", "ttl_batch_documents", "Documents deleted in them."),
		counter("batchedDeletes/stagedSizeBytes", "ttl_reclaimed_bytes", "Bytes of the documents deleted in them."),
		counter("batchedDeletes/timeInBatchMillis", "ttl_batch_seconds", "How long they took.").times(1e-3),
		omit("batchedDeletes/refetchesDueToYield", neverCounts),

		// Storage and memory.
		gauge("pebble/diskBytes", "storage_disk_bytes", "Bytes of the store on disk."),
		gauge("pebble/deletedBytes", "storage_deleted_bytes", "About how many of them are deleted and wait to come back."),
		gauge("pebble/snapshots", "storage_snapshots", "Snapshots of the store that are open."),
		gauge("pebble/memTableBytes", "storage_memtable_bytes", "Bytes of writes that are in memory and in the log."),
		gauge("pebble/cacheBytes", "storage_cache_bytes", "Bytes of the store that are kept in memory."),
		counter("pebble/compactions", "storage_compactions", "Compactions of the store."),
		counter("pebble/flushes", "storage_flushes", "Flushes of the store."),
		gauge("pebble/readOnly", "storage_read_only", "Whether the store takes no writes because damage was found."),
		omit("storageEngine", "tells what the engine can do"),
		gauge("ebbMemory/totalBytes", "memory_limit_bytes", "Bytes that operations, cursors, messages and index builds may take together."),
		gauge("ebbMemory/used/*", "memory_used_bytes", "Bytes that they take.", "kind").trimmed("Bytes"),
		omit("ebbMemory/usedBytes", "is the sum of ebbMemory.used"),
		gauge("ebbMemory/peakBytes", "memory_peak_bytes", "The most that they have taken."),
		gauge("ebbMemory/residentBytes", "memory_resident_bytes", "Bytes that the process and its workers have in memory."),
		gauge("ebbMemory/squeezedBytes", "memory_squeezed_bytes", "Bytes that they may not take at the moment because the machine has not that much."),
		gauge("ebbMemory/waiting", "memory_waiting", "Operations that wait for memory."),
		counter("ebbMemory/waits", "memory_waits", "How often one waited."),
		counter("ebbMemory/refusals", "memory_refusals", "How often one was refused."),
		counter("ebbMemory/reclaimedBytes", "memory_reclaimed_bytes", "Bytes that parked cursors have given back."),
		counter("ebbMemory/cursorsEnded", "memory_cursors_ended", "Cursors that were ended to have their memory."),
		gauge("extra_info/maximum_resident_set_kb", "process_resident_memory_max_bytes", "The most that the process had in memory.").times(1024),
		counter("extra_info/page_faults", "process_page_faults", "Pages that had to be read from disk."),
		counter("extra_info/page_reclaims", "process_page_reclaims", "Pages that were in memory still."),
		counter("extra_info/input_blocks", "process_input_blocks", "Blocks of 512 bytes read from disk."),
		counter("extra_info/output_blocks", "process_output_blocks", "Blocks of 512 bytes written to disk."),
		counter("extra_info/voluntary_context_switches", "process_voluntary_switches", "How often a thread has waited."),
		counter("extra_info/involuntary_context_switches", "process_forced_switches", "How often a thread has had to give its processor up."),
		omit("extra_info/user_time_us", "is process_cpu_seconds_total"),
		omit("extra_info/system_time_us", "is process_cpu_seconds_total"),
		omit("extra_info/threads", "is go_threads"),
		omit("mem", "is process_resident_memory_bytes and process_virtual_memory_bytes"),

		// Sessions and transactions.
		gauge("logicalSessionRecordCache/activeSessionsCount", "sessions", "Logical sessions."),
		gauge("logicalSessionRecordCache/sessionCatalogSize", "sessions_with_history", "Sessions that have a transaction or retryable writes."),
		omit("logicalSessionRecordCache", "tells of jobs that are not there"),
		gauge("transactions/currentActive", "transactions_active", "Open transactions in which an operation runs."),
		gauge("transactions/currentInactive", "transactions_idle", "Open transactions in which none runs."),
		omit("transactions/currentOpen", "is a sum"),
		counter("transactions/totalStarted", "transactions_started", "Transactions that were begun."),
		counter("transactions/totalCommitted", "transactions_committed", "Transactions that were committed."),
		counter("transactions/totalAborted", "transactions_aborted", "Transactions that were aborted."),
		counter("transactions/retriedCommandsCount", "retried_commands", "Retryable writes that were sent again."),
		counter("transactions/retriedStatementsCount", "retried_statements", "Statements of those that had been done before."),
		counter("transactions/transactionsCollectionWriteCount", "session_record_writes", "Writes to the records of sessions."),
		omit("transactions/totalPrepared", neverCounts),
		omit("transactions/totalPreparedThenCommitted", neverCounts),
		omit("transactions/totalPreparedThenAborted", neverCounts),
		omit("transactions/currentPrepared", neverCounts),

		// The replica set.
		gauge("repl/isWritablePrimary", "replica_set_is_primary", "Whether the member is the primary."),
		gauge("repl/secondary", "replica_set_is_secondary", "Whether the member is a secondary."),
		gauge("repl/setVersion", "replica_set_config_version", "The version of the configuration."),
		gauge("repl/lastWrite/lastWriteDate", "replica_set_last_write_timestamp_seconds", "When the last write was, as Unix time."),
		gauge("repl/lastWrite/majorityWriteDate", "replica_set_majority_write_timestamp_seconds", "When the last write was that a majority has, as Unix time."),
		gauge("repl/lastWrite/opTime/t", "replica_set_term", "The term of the last write."),
		omit("repl/lastWrite", "is a time that is told as a date"),
		gauge("repl/userWriteBlockMode", "user_write_block_mode", "1: users may write; 2: their writes are blocked."),
		omit("repl/userWriteBlockReason", "is a number without a measure"),
		omit("repl/rbid", "is a number without a measure"),
		omit("repl/topologyVersion", "is a number without a measure"),
		counter("oplogTruncation/truncateCount", "oplog_truncations", "How often the oldest entries of the oplog were removed."),
		counter("oplogTruncation/totalTimeTruncatingMicros", "oplog_truncation_seconds", "How long that took.").times(1e-6),
		gauge("oplogTruncation/oplogMinRetentionHours", "oplog_min_retention_seconds", "For how long entries of the oplog are kept at least.").times(3600),
		omit("oplogTruncation/totalTimeProcessingMicros", neverCounts),
		omit("defaultRWConcern", "is a setting"),
	}
}

func (r row) times(scale float64) row {
	r.scale = scale
	return r
}

func (r row) trimmed(suffix string) row {
	r.trim = suffix
	return r
}
