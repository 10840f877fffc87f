package server

import "testing"

// TestASocketIsFreeOnceItIsListenedTo: who takes a socket when it is free may close it, so the poller listens again before. Here
// it cannot, and the socket stays whose it was.
func TestASocketIsFreeOnceItIsListenedTo(t *testing.T) {
	s := &socket{fd: -1, poller: &poller{epoll: -1}}
	s.hold.Store(deaf)
	defer func() {
		if recover() == nil {
			t.Error("the poller listens to nothing")
		}
		if s.take() {
			t.Error("a socket was free before the poller listened")
		}
	}()
	s.release()
}
