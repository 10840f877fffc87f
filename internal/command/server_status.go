package command

import (
	"math"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/ebbdb/ebb/internal/auth/privilege"
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/host"
)

func serverStatusCommands() []*Command {
	return []*Command{
		{Name: "serverStatus", Needs: Needs{OnCluster: actions(privilege.ServerStatus)}, Doc: "Tells how the server is doing.", Run: serverStatus},
	}
}

// section is one row of serverStatus. Each can be left out by {name: 0}, and an optional one is asked for by {name: 1}.
type section struct {
	name     string
	optional bool
	// member says that only a member of a replica set has it.
	member bool
	append func(*Op, *bson.Builder)
}

// statusSections are the sections in the order of the reply.
func statusSections() []section {
	return []section{
		{name: "asserts", append: (*Op).assertsSection},
		{name: "batchedDeletes", append: (*Op).batchedDeletesSection},
		{name: "catalogStats", append: (*Op).catalogSection},
		{name: "changeStreamPreImages", append: (*Op).preImagesSection},
		{name: "connections", append: (*Op).connectionsSection},
		{name: "defaultRWConcern", member: true, append: func(op *Op, b *bson.Builder) { op.appendDefaults(b) }},
		{name: "ebbAudit", append: (*Op).auditSection},
		{name: "ebbMemory", append: (*Op).ebbMemorySection},
		{name: "extra_info", append: (*Op).extraInfoSection},
		{name: "featureCompatibilityVersion", append: (*Op).featureCompatibilitySection},
		{name: "globalLock", append: (*Op).globalLockSection},
		{name: "locks", append: (*Op).locksSection},
		{name: "logicalSessionRecordCache", append: (*Op).sessionsSection},
		{name: "mirroredReads", optional: true, append: func(_ *Op, b *bson.Builder) { b.Int64("seen", 0).Int64("sent", 0) }},
		{name: "network", append: (*Op).networkSection},
		{name: "opLatencies", append: (*Op).opLatenciesSection},
		{name: "opcounters", append: (*Op).opcountersSection},
		{name: "opcountersRepl", append: func(_ *Op, b *bson.Builder) { zeros(b, "insert query update delete getmore command") }},
		{name: "oplog", member: true, optional: true, append: (*Op).oplogSection},
		{name: "oplogTruncation", member: true, append: (*Op).oplogTruncationSection},
		{name: "pebble", append: (*Op).pebbleSection},
		{name: "queues", append: (*Op).queuesSection},
		{name: "repl", member: true, append: (*Op).replSection},
		{name: "security", append: (*Op).securitySection},
		{name: "storageEngine", append: (*Op).storageEngineSection},
		{name: "transactions", append: (*Op).transactionsSection},
		{name: "transportSecurity", append: (*Op).transportSection},
		{name: "mem", append: (*Op).memSection},
		{name: "metrics", append: (*Op).metricsSection},
	}
}

func serverStatus(op *Op) (bson.Doc, error) {
	up := op.uptime()
	process, service := "mongod", "shard"
	if op.Router {
		process, service = "mongos", "router"
	}
	b := bson.Build().String("host", op.hostname()).String("version", op.Version).String("ebbVersion", op.EbbVersion).String("process", process).
		Strings("service", []string{service}).Int64("pid", int64(os.Getpid())).Double("uptime", math.Floor(up.Seconds())).
		Int64("uptimeMillis", up.Milliseconds()).Int64("uptimeEstimate", int64(up/time.Second)).Date("localTime", clock.Millis(op.Clock))
	for _, s := range statusSections() {
		asked := op.Args.Value(s.name)
		if s.member && op.Replica == nil {
			continue
		}
		if wanted := !asked.IsMissing() && asked.Truthy(); wanted || asked.IsMissing() && !s.optional {
			b.Object(s.name)
			s.append(op, b)
			b.End()
		}
	}
	return b.Doc(), nil
}

// elapsed is how long the clock has run: what takes long is measured by it, for no setting of the wall time moves it.
func (s *Server) elapsed() time.Duration { return clock.Monotonic(s.Clock) }

// uptime is how long the server has run.
func (s *Server) uptime() time.Duration { return s.elapsed() - s.began }

func (op *Op) assertsSection(b *bson.Builder) {
	b.Int32("regular", 0).Int32("warning", 0).Int32("msg", 0).Number("user", op.tally.userErrors.Load()).Int32("tripwire", 0).Int32("rollovers", 0)
}

func (op *Op) batchedDeletesSection(b *bson.Builder) {
	if op.Expiry != nil {
		op.Expiry.AppendBatchedDeletes(b)
	}
}

func (op *Op) catalogSection(b *bson.Builder) {
	var collections, capped, clustered, series, views, internal, internalViews int32
	for _, c := range op.collections() {
		ours := c.NS.IsSystem() || c.NS.DB == "admin" || c.NS.DB == "local" || c.NS.DB == "config"
		switch {
		case c.IsView() && ours:
			internalViews++
		case c.IsView():
			views++
		case ours:
			internal++
		default:
			collections++
			if c.Options.Capped {
				capped++
			}
			if c.IsClustered() {
				clustered++
			}
			if c.IsTimeSeries() {
				series++
			}
		}
	}
	b.Int32("collections", collections).Int32("capped", capped).Int32("clustered", clustered).Int32("timeseries", series).
		Int32("views", views).Int32("internalCollections", internal).Int32("internalViews", internalViews)
}

// traffic is what Config.Traffic says, or nothing.
func (s *Server) traffic() Traffic {
	if s.Traffic == nil {
		return Traffic{}
	}
	return s.Traffic()
}

func (op *Op) connectionsSection(b *bson.Builder) {
	t := op.traffic()
	e := t.Establishment
	current := int32(t.Current - e.Queued)
	b.Int32("current", current).Int32("available", int32(t.Available)).Int32("totalCreated", int32(t.TotalCreated)).
		Int32("rejected", int32(t.Rejected)).Int32("active", int32(t.Active)).Int64("queuedForEstablishment", e.Queued).
		Object("establishmentRateLimit").Int64("rejected", e.Rejected).Int64("exempted", e.Exempted).End().Int32("threaded", current).
		Int64("exhaustIsMaster", op.hellos.exhaustIsMaster.Load()).Int64("exhaustHello", op.hellos.exhaustHello.Load()).
		Int64("awaitingTopologyChanges", op.hellos.all.Load()).Int64("loadBalanced", 0)
}

// queuesSection tells of those who wait to be let in.
func (op *Op) queuesSection(b *bson.Builder) {
	e := op.traffic().Establishment
	average := 0.0
	if e.Waited > 0 {
		average = float64(e.WaitedMicros) / float64(e.Waited)
	}
	b.Object("ingressSessionEstablishment").Int64("addedToQueue", e.Waits).Int64("removedFromQueue", e.Waited+e.Interrupted).
		Int64("interruptedInQueue", e.Interrupted).Int64("rejectedAdmissions", e.Rejected).Int64("exemptedAdmissions", e.Exempted).
		Int64("successfulAdmissions", e.Admitted).Int64("attemptedAdmissions", e.Attempted).Double("averageTimeQueuedMicros", average).
		Int64("totalAvailableTokens", e.Tokens).End()
}

func (op *Op) networkSection(b *bson.Builder) {
	t := op.traffic()
	b.Int64("bytesIn", t.BytesIn).Int64("bytesOut", t.BytesOut).Int64("physicalBytesIn", t.BytesIn).Int64("physicalBytesOut", t.BytesOut).
		Int64("numSlowDNSOperations", 0).Int64("numSlowSSLOperations", t.SlowTLS).Int64("numRequests", t.Requests)
}

func (op *Op) extraInfoSection(b *bson.Builder) {
	u := host.Used()
	b.String("note", "fields vary by platform").Int64("user_time_us", u.UserMicros).Int64("system_time_us", u.SystemMicros).
		Int64("maximum_resident_set_kb", u.MaxResidentKB).Int64("input_blocks", u.InputBlocks).Int64("output_blocks", u.OutputBlocks).
		Int64("page_reclaims", u.PageReclaims).Int64("page_faults", u.PageFaults).
		Int64("voluntary_context_switches", u.VoluntarySwitches).Int64("involuntary_context_switches", u.ForcedSwitches).Int64("threads", u.Threads)
}

func (op *Op) memSection(b *bson.Builder) {
	u := host.Used()
	b.Int32("bits", strconv.IntSize).Int32("resident", int32(u.ResidentBytes>>20)).Int32("virtual", int32(u.VirtualBytes>>20)).Bool("supported", true)
}

func (op *Op) featureCompatibilitySection(b *bson.Builder) {
	version := latestFCV
	if p := op.Params.Lookup("featureCompatibilityVersion"); p != nil {
		version = p.Get().Doc().Lookup("version").Str()
	}
	parts := versionArray(version)
	b.Int32("major", parts[0]).Int32("minor", parts[1]).Int32("transitioning", 0)
}

// globalLockSection counts running operations as clients. Only writers queue for a lock of the whole server, that of fsync.
func (op *Op) globalLockSection(b *bson.Builder) {
	var readers, writers, queued int32
	for _, o := range op.Ops.Running() {
		if o.Stats.WaitingForLock.Load() {
			queued++
			continue
		}
		switch o.Kind {
		case "insert", "update", "remove":
			writers++
		default:
			readers++
		}
	}
	b.Int64("totalTime", op.uptime().Microseconds())
	b.Object("currentQueue").Int32("total", queued).Int32("readers", 0).Int32("writers", queued).End()
	b.Object("activeClients").Int32("total", readers+writers).Int32("readers", readers).Int32("writers", writers).End()
}

func (op *Op) locksSection(b *bson.Builder) {
	reads := op.tally.reads.count.Load() + op.tally.commands.count.Load()
	for _, resource := range []string{"Global", "Database", "Collection"} {
		b.Object(resource).Object("acquireCount").Int64("r", reads).Int64("w", op.tally.writes.count.Load()).End().End()
	}
}

func (op *Op) sessionsSection(b *bson.Builder) {
	b.Int32("activeSessionsCount", int32(op.Sessions.Count())).Int32("sessionsCollectionJobCount", 0).
		Int32("lastSessionsCollectionJobDurationMillis", 0).Date("lastSessionsCollectionJobTimestamp", op.started.UnixMilli()).
		Int32("lastSessionsCollectionJobEntriesRefreshed", 0).Int32("lastSessionsCollectionJobEntriesEnded", 0).
		Int32("lastSessionsCollectionJobCursorsClosed", 0).Int32("transactionReaperJobCount", 0).
		Int32("lastTransactionReaperJobDurationMillis", 0).Date("lastTransactionReaperJobTimestamp", op.started.UnixMilli()).
		Int32("lastTransactionReaperJobEntriesCleanedUp", 0).Int32("sessionCatalogSize", int32(op.Sessions.Seated()))
}

func (op *Op) securitySection(b *bson.Builder) {
	op.logins.append(b, op.offers)
	op.certificateFields(b)
}

func (op *Op) opcountersSection(b *bson.Builder) {
	c := &op.counts
	b.Int64("insert", c.inserts.Load()).Int64("query", c.queries.Load()).Int64("update", c.updates.Load()).
		Int64("delete", c.deletes.Load()).Int64("getmore", c.getMores.Load()).Int64("command", c.commands.Load())
}

func (op *Op) opLatenciesSection(b *bson.Builder) {
	for _, kind := range []struct {
		name string
		of   *latency
	}{{"reads", &op.tally.reads}, {"writes", &op.tally.writes}, {"commands", &op.tally.commands}, {"transactions", op.transactionLatency()}} {
		b.Object(kind.name).Int64("latency", kind.of.micros.Load()).Int64("ops", kind.of.count.Load()).Int64("queryableEncryptionLatencyMicros", 0).End()
	}
}

// transactionLatency is how long transactions that are over were open.
func (op *Op) transactionLatency() *latency {
	l, n := &latency{}, op.Sessions.Counts()
	l.micros.Store(n.Micros.Load())
	l.count.Store(n.Committed.Load() + n.Aborted.Load())
	return l
}

func (op *Op) storageEngineSection(b *bson.Builder) {
	b.String("name", op.Engine).Bool("supportsCommittedReads", true).Bool("supportsPendingDrops", true).Int64("dropPendingIdents", 0).
		Bool("supportsSnapshotReadConcern", true).Bool("readOnly", false).Bool("persistent", op.Engine != "inMemory").Bool("backupCursorOpen", false)
}

// transactionsSection tells of transactions and of writes that were sent again. None is ever prepared.
func (op *Op) transactionsSection(b *bson.Builder) {
	var active, inactive int64
	for _, o := range op.Sessions.Open() {
		if o.Operation != 0 {
			active++
		} else {
			inactive++
		}
	}
	writes := int64(0)
	if op.Replica != nil {
		writes = op.Query.Store.HistoryWrites()
	}
	n := op.Sessions.Counts()
	b.Int64("retriedCommandsCount", op.tally.retriedCommands.Load()).Int64("retriedStatementsCount", op.tally.retriedStatements.Load()).
		Int64("transactionsCollectionWriteCount", writes).
		Int64("currentActive", active).Int64("currentInactive", inactive).Int64("currentOpen", active+inactive).
		Int64("totalAborted", n.Aborted.Load()).Int64("totalCommitted", n.Committed.Load()).Int64("totalStarted", n.Started.Load())
	zeros(b, "totalPrepared totalPreparedThenCommitted totalPreparedThenAborted currentPrepared")
}

// replSection is what hello tells of the replica set, and rbid, the number of rollbacks and one.
func (op *Op) replSection(b *bson.Builder) {
	v := op.Replica.View()
	op.appendMember(b, "isWritablePrimary", v, op.topologyOf(v))
	if v.Config != nil {
		mode, reason := int32(1), 0 // of those that MongoDB numbers
		if blocked := op.writesBlocked.Load(); blocked != nil {
			mode, reason = 2, max(0, slices.Index(blockReasons, blocked.reason))
		}
		b.Int32("userWriteBlockMode", mode).Int32("userWriteBlockReason", int32(reason)).Int32("rbid", 1)
	}
}
