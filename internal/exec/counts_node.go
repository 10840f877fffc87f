package exec

// skipNode leaves out the first of what its child gives.
type skipNode struct {
	left int64
	in   working
}

func (n *skipNode) work(r *reading, m *Member) (status, error) {
	s, err := n.in.work(r, m)
	if s == advanced && n.left > 0 {
		n.left--
		return needTime, err
	}
	return s, err
}

func (n *skipNode) park()        { n.in.park() }
func (n *skipNode) close() error { return n.in.close() }

// limitNode gives the first of what its child gives.
type limitNode struct {
	left int64
	in   working
}

func (n *limitNode) work(r *reading, m *Member) (status, error) {
	if n.left == 0 {
		return ended, nil
	}
	s, err := n.in.work(r, m)
	if s == advanced {
		n.left--
	}
	return s, err
}

func (n *limitNode) park()        { n.in.park() }
func (n *limitNode) close() error { return n.in.close() }
