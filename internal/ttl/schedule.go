package ttl

// goAround visits each target once, and again those whose visit says that there is more, until there is none or spent says
// that the time is over, which it is asked after each round. It says whether work is left.
//
// So an index with a large backlog takes its turn like any other, and the small ones never wait for it to be through.
func goAround(targets []Target, visit func(Target) (more bool, err error), spent func() bool) (left bool, err error) {
	for len(targets) > 0 {
		var again []Target
		for _, t := range targets {
			more, err := visit(t)
			if err != nil {
				return true, err
			}
			if more {
				again = append(again, t)
			}
		}
		if targets = again; spent() {
			break
		}
	}
	return len(targets) > 0, nil
}
