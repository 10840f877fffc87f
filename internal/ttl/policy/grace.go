package policy

// Grace is the time after a TTL was made or shortened in which its makers can change their minds: what it made due at once is not
// deleted yet. It hides at once where the rule hides. The zero Grace spares nothing.
type Grace struct {
	// At is when the TTL was changed, Until when what was due by then may be deleted; milliseconds since the epoch.
	At, Until int64
	// AsSleep says that it was to be as long as ttlMonitorSleepSecs: where that is shorter by now, so is the grace.
	AsSleep bool
}

// IsZero says whether g spares nothing at any time.
func (g Grace) IsZero() bool { return g == Grace{} }

// End is Until, or earlier by what AsSleep says; sleep is ttlMonitorSleepSecs in milliseconds.
func (g Grace) End(sleep int64) int64 {
	if g.AsSleep {
		return min(g.Until, g.At+sleep)
	}
	return g.Until
}

// Spares says whether what has the deadline waits for the end of g.
func (g Grace) Spares(deadline int64) bool { return deadline <= g.At }
