package main

import (
	"sync"
	"time"
)

// rssInterval is how often memory is looked at while a meter runs.
const rssInterval = 100 * time.Millisecond

// meter takes what the server, this process and the machine use, from its start on.
type meter struct {
	target *target
	begin  moment
	done   chan struct{}
	wait   sync.WaitGroup
	peak   int64 // of the goroutine until it has been waited for
}

// moment is what had been used at one time.
type moment struct {
	at                   time.Time
	server, client, busy time.Duration
	rss                  int64
}

// usage is what lies between two moments.
type usage struct {
	wall, server, client, busy   time.Duration
	rssBefore, rssAfter, rssPeak int64
	disk                         disk
	serverKnown, diskKnown       bool
}

func (t *target) now() moment {
	m := moment{at: time.Now(), client: ownCPU(), busy: machineBusy()}
	if len(t.pids) > 0 {
		ps := family(t.pids)
		m.server, m.rss = cpuOf(ps), residentBytes(ps)
	}
	return m
}

func (t *target) meter() *meter {
	m := &meter{target: t, begin: t.now(), done: make(chan struct{})}
	m.peak = m.begin.rss
	if len(t.pids) > 0 {
		m.wait.Go(m.watch)
	}
	return m
}

// watch looks at the processes there were at the start; what they fork meanwhile shows at the end.
func (m *meter) watch() {
	ps := family(m.target.pids)
	for every := time.NewTicker(rssInterval); ; {
		select {
		case <-m.done:
			every.Stop()
			return
		case <-every.C:
		}
		for i := range ps {
			if p, err := lookAt(ps[i].pid); err == nil {
				ps[i] = p
			}
		}
		m.peak = max(m.peak, residentBytes(ps))
	}
}

func (m *meter) stop() usage {
	end := m.target.now()
	close(m.done)
	m.wait.Wait()
	u := m.begin.until(end)
	u.rssPeak = max(m.peak, end.rss)
	u.serverKnown = len(m.target.pids) > 0
	if m.target.data != "" {
		u.disk, u.diskKnown = diskUsage(m.target.data), true
	}
	return u
}

func (a moment) until(b moment) usage {
	return usage{wall: b.at.Sub(a.at), server: b.server - a.server, client: b.client - a.client, busy: b.busy - a.busy,
		rssBefore: a.rss, rssAfter: b.rss}
}

// into adds what a number of operations cost.
func (u usage) into(m metrics, ops int64) {
	if ops > 0 {
		m["client_us"] = micros(u.client) / float64(ops)
	}
	if u.diskKnown {
		m["disk_mib"], m["disk_data_mib"] = mebi(u.disk.total), mebi(u.disk.data())
	}
	if !u.serverKnown {
		return
	}
	m["rss_before_mib"], m["rss_after_mib"], m["rss_peak_mib"] = mebi(u.rssBefore), mebi(u.rssAfter), mebi(u.rssPeak)
	m["server_cores"], m["client_cores"] = u.server.Seconds()/u.wall.Seconds(), u.client.Seconds()/u.wall.Seconds()
	m["other_cores"] = max(0, (u.busy-u.server-u.client).Seconds()/u.wall.Seconds())
	if ops > 0 {
		m["server_us"] = micros(u.server) / float64(ops)
		if u.client > 0 {
			m["server_per_client"] = u.server.Seconds() / u.client.Seconds()
		}
	}
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
func mebi(bytes int64) float64       { return float64(bytes) / (1 << 20) }
