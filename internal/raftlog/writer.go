package raftlog

import "sync"

// writer is what the goroutine has to do that brings a member's writes to its disk.
type writer struct {
	ended  sync.WaitGroup // apart from the member's: it may wait for a full disk for ever
	wake   chan struct{}  // holds one
	mu     sync.Mutex     // guards queued
	queued []*Write
}

// putBytes is from how many bytes of entries on others wait for the next write to the disk.
const putBytes = 4 << 20

func (m *Member) giveWrites(writes []*Write) {
	if len(writes) == 0 {
		return
	}
	m.writer.mu.Lock()
	m.writer.queued = append(m.writer.queued, writes...)
	m.writer.mu.Unlock()
	select {
	case m.writer.wake <- struct{}{}:
	default:
	}
}

// next are the writes to do together.
func (w *writer) next() (writes []*Write) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n, bytes := 0, 0
	for n < len(w.queued) && (n == 0 || bytes+w.queued[n].bytes() <= putBytes) {
		bytes += w.queued[n].bytes()
		n++
	}
	writes, w.queued = w.queued[:n:n], w.queued[n:]
	return writes
}

// write brings to the disk what the loop gives out, all that has come meanwhile at once.
func (m *Member) write() {
	for {
		writes := m.writer.next()
		if len(writes) == 0 {
			select {
			case <-m.writer.wake:
				continue
			case <-m.quit.Done():
				return
			}
		}
		if m.quit.Err() != nil {
			return
		}
		if err := m.o.Disk.Put(writes); err != nil {
			if m.quit.Err() == nil {
				m.fail(err)
			}
			return
		}
		m.mu.Lock()
		m.mu.written = append(m.mu.written, writes...)
		m.mu.Unlock()
		m.awake()
	}
}
