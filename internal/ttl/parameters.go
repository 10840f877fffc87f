package ttl

import (
	"math"
	"time"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/parameter"
)

// Parameters are the server parameters of expiry, all settable at start and while running.
type Parameters struct {
	// Enabled is ttlMonitorEnabled: whether passes are run.
	Enabled *parameter.Bool
	// SleepSecs is ttlMonitorSleepSecs: the time from one pass over everything to the next.
	SleepSecs *parameter.Int
	// Precise is ttlMonitorPrecise: whether the monitor also wakes at each deadline.
	Precise *parameter.Bool
	// BatchDeletes is ttlMonitorBatchDeletes. Without it documents are deleted one by one, and an index is drained before
	// the next has its turn.
	BatchDeletes *parameter.Bool
	// SubPassTargetSecs is how long a sub-pass goes around; 0 for once.
	SubPassTargetSecs *parameter.Int
	// TargetTimeMS and TargetDocs bound one visit of an index; 0 is unlimited.
	TargetTimeMS, TargetDocs *parameter.Int
	// BatchDocs, BatchTimeMS and StagedDocBytes bound one transaction of deletes; 0 is unlimited.
	BatchDocs, BatchTimeMS, StagedDocBytes *parameter.Int
	// MinCPUPercent is ttlMonitorMinCPUPercent: how much of one processor sweeps get at least, however busy it is; 100 lets
	// them never rest.
	MinCPUPercent *parameter.Int

	// HideExpired is ttlHideExpired: whether every TTL index hides what has expired.
	HideExpired *parameter.Bool
	// CollModNaNIsZero is ttlCollModNaNIsZero: whether collMod takes NaN for 0, as MongoDB does.
	CollModNaNIsZero *parameter.Bool
	// OnCapped is ttlOnCapped: whether capped collections may have TTL indexes.
	OnCapped *parameter.Bool
	// ChangeGraceSecs is ttlChangeGraceSecs: for how long what is due at the instant when a TTL is made or shortened is not deleted; -1
	// for as long as SleepSecs.
	ChangeGraceSecs *parameter.Int
	// MassExpiryGuard is ttlMassExpiryGuard: the share of a collection that a change of its TTLs may make expire at once; 0
	// for any.
	MassExpiryGuard *parameter.Double

	// MaxClockStepSecs is ttlMaxClockStepSecs: how much further ahead than it should be the clock is trusted.
	MaxClockStepSecs *parameter.Int
	// ClockSettleSecs is ttlClockSettleSecs: after how long it is trusted again.
	ClockSettleSecs *parameter.Int
	// HoldAfterSecs is ttlHoldAfterSecs: for how long nothing may have been written at a start, or expiry is held; 0 for any time.
	HoldAfterSecs *parameter.Int
	// Hold is ttlHold: where the clock of expiry stands still.
	Hold *Hold
}

// NewParameters adds the parameters to r.
func NewParameters(r *parameter.Registry) *Parameters {
	flag := func(name string, def bool) *parameter.Bool { return parameter.NewBool(r, name, parameter.Both, def) }
	long := func(name string, def int64) *parameter.Int {
		return parameter.NewInt(r, name, parameter.Both, def, 0, math.MaxInt64, true)
	}
	p := &Parameters{
		Enabled:           flag("ttlMonitorEnabled", true),
		SleepSecs:         parameter.NewInt(r, sleepSecsName, parameter.Both, 60, 1, math.MaxInt32, false),
		Precise:           flag("ttlMonitorPrecise", true),
		BatchDeletes:      flag("ttlMonitorBatchDeletes", true),
		SubPassTargetSecs: parameter.NewInt(r, "ttlMonitorSubPassTargetSecs", parameter.Both, 60, 0, math.MaxInt32, false),
		TargetTimeMS:      long("ttlIndexDeleteTargetTimeMS", 1000),
		TargetDocs:        long("ttlIndexDeleteTargetDocs", 50_000),
		BatchDocs:         long("batchedDeletesTargetBatchDocs", 10),
		BatchTimeMS:       long("batchedDeletesTargetBatchTimeMS", 5),
		StagedDocBytes:    long("batchedDeletesTargetStagedDocBytes", 32<<20),
		MinCPUPercent:     parameter.NewInt(r, "ttlMonitorMinCPUPercent", parameter.Both, 10, 1, 100, false),
		HideExpired:       flag(HideExpiredName, false),
		CollModNaNIsZero:  flag("ttlCollModNaNIsZero", false),
		OnCapped:          flag("ttlOnCapped", false),
		ChangeGraceSecs:   parameter.NewInt(r, changeGraceName, parameter.Both, -1, -1, math.MaxInt32, false),
		MassExpiryGuard:   parameter.NewDouble(r, MassExpiryGuardName, parameter.Both, 0, 0, 1),
		MaxClockStepSecs:  parameter.NewInt(r, clockStepName, parameter.Both, 3600, 1, math.MaxInt32, false),
		ClockSettleSecs:   parameter.NewInt(r, clockSettleName, parameter.Both, 60, 0, math.MaxInt32, false),
		HoldAfterSecs:     parameter.NewInt(r, holdAfterName, parameter.Startup, 0, 0, math.MaxInt32, false),
		Hold:              newHold(r),
	}
	// What these two mean to MongoDB has no counterpart here: deletes have no admission queue, and metadata needs no
	// recovery. They are shown, and refused to be changed.
	parameter.NewFixed(r, "ttlMonitorBackgroundOperation", bson.False)
	parameter.NewFixed(r, "ttlMonitorMaxMetadataRecoveryThreads", bson.Int32(5))
	refuseZeroSleep(r.Lookup(sleepSecsName))
	return p
}

// Names of parameters that others tell apart by.
const (
	sleepSecsName   = "ttlMonitorSleepSecs"
	changeGraceName = "ttlChangeGraceSecs"
	clockStepName   = "ttlMaxClockStepSecs"
	clockSettleName = "ttlClockSettleSecs"
	holdAfterName   = "ttlHoldAfterSecs"
)

// HideExpiredName is the name of Parameters.HideExpired. It is switched off by loosen.Loosener.StopHiding.
const HideExpiredName = "ttlHideExpired"

// MassExpiryGuardName is the name of Parameters.MassExpiryGuard.
const MassExpiryGuardName = "ttlMassExpiryGuard"

// refuseZeroSleep says it in MongoDB's words, whose bound is "greater than 0".
func refuseZeroSleep(p *parameter.Parameter) {
	set := p.Set
	p.Set = func(v bson.Value) error {
		if v.IsNumber() && v.TruncInt64() <= 0 && !v.IsNaN() {
			return mongoerr.New(mongoerr.BadValue, "Invalid value for parameter %s: %d is not greater than 0", p.Name, v.TruncInt64())
		}
		return set(v)
	}
}

// Grace is for storage.Options.
func (p *Parameters) Grace() (millis int64, asSleep bool) {
	if n := p.ChangeGraceSecs.Get(); n >= 0 {
		return n * 1000, false
	}
	return p.SleepSecs.Get() * 1000, true
}

// sleep is the time from one pass over everything to the next.
func (p *Parameters) sleep() time.Duration { return seconds(p.SleepSecs.Get()) }

// clockStep is how much further ahead than it should be the clock is trusted.
func (p *Parameters) clockStep() time.Duration { return seconds(p.MaxClockStepSecs.Get()) }

// clockSettle is for how long it is not trusted beyond that.
func (p *Parameters) clockSettle() time.Duration { return seconds(p.ClockSettleSecs.Get()) }

func seconds(n int64) time.Duration {
	return time.Duration(min(n, int64(math.MaxInt64/time.Second))) * time.Second
}

func millis(n int64) time.Duration {
	return time.Duration(min(n, int64(math.MaxInt64/time.Millisecond))) * time.Millisecond
}

// leastShare is the part of one processor that sweeps get at least.
func (p *Parameters) leastShare() float64 { return float64(p.MinCPUPercent.Get()) / 100 }

// visitBudget bounds one visit.
func (p *Parameters) visitBudget() budget {
	if !p.BatchDeletes.Get() {
		return budget{}
	}
	return budget{docs: p.TargetDocs.Get(), time: millis(p.TargetTimeMS.Get())}
}

// joinedBatches is how many batches one transaction carries if there is time for them: what it costs beside its deletes,
// and the search for where they belong, is shared. A hundred documents at once took a sixth less processor time each than
// ten.
const joinedBatches = 10

// Bounds of a transaction of deletes where its parameters say "unlimited", or more.
const (
	maxBatchDocs  = 10_000
	maxBatchBytes = 128 << 20
)

// batchBudget bounds one transaction.
func (p *Parameters) batchBudget() budget {
	if !p.BatchDeletes.Get() {
		return budget{docs: 1}
	}
	return budget{
		docs:  min(p.batchDocs()*joinedBatches, maxBatchDocs),
		bytes: bounded(p.StagedDocBytes.Get(), maxBatchBytes),
		time:  millis(p.BatchTimeMS.Get()),
	}
}

// batchDocs is how many documents make a batch.
func (p *Parameters) batchDocs() int64 { return bounded(p.BatchDocs.Get(), maxBatchDocs) }

func bounded(n, most int64) int64 {
	if n == 0 {
		return most
	}
	return min(n, most)
}
