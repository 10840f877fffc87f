package clock

// Waiting is the number of timers that have not fired: a test that is about to turn the clock can tell by it that
// whoever should wait does.
func (f *Fake) Waiting() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.mu.timers)
}
