package planner

// stepsPerAsk is how many demands, intervals and indexes are looked at between two questions.
const stepsPerAsk = 1024

// stopped is the panic by which planning ends that goes on no more. It does not leave the package: caught makes an error of it.
// What plans a query is many small functions, and none of them can fail otherwise.
type stopped struct{ err error }

// step counts n of what is looked at. A filter of 16 MB may have a million conjuncts, each of which may be held against each
// index and each branch of an $or.
func (p *planning) step(n int) {
	if p.q.Interrupt == nil {
		return
	}
	if p.steps += n; p.steps < stepsPerAsk {
		return
	}
	p.steps = 0
	if err := p.q.Interrupt(); err != nil {
		panic(stopped{err})
	}
}

// caught is deferred by whoever begins to plan.
func caught(err *error) {
	switch r := recover().(type) {
	case nil:
	case stopped:
		*err = r.err
	default:
		panic(r)
	}
}
