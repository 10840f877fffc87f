package ebbtest

// Told is how many commits a member has, and how many bytes all members have sent to others.
func (s *Set) Told(member int) (commits, sent int64) {
	s.t.Helper()
	p, err := s.position(member)
	if err != nil {
		s.t.Fatal(err)
	}
	s.network.mu.Lock()
	defer s.network.mu.Unlock()
	return p.number, s.network.mu.sent
}
