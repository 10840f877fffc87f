package pipeline

import (
	"github.com/ebbdb/ebb/internal/accumulator"
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/javascript"
)

// MapReduce is the command mapReduce between the documents that it reads and what becomes of its results.
type MapReduce struct {
	Map, Reduce *javascript.Function
	// Then are the stages for the results, {_id, value}.
	Then bson.Value
}

// Emit makes documents {k, v} of what a function emits for each document.
type Emit struct {
	written
	Map *javascript.Function
}

// ParseMapReduce is Parse, with m done to what the stages give; m may be nil.
func (p *Parser) ParseMapReduce(stages bson.Value, m *MapReduce, o Options) (*Pipeline, error) {
	out, err := p.Parse(stages, o)
	if err != nil || m == nil {
		return out, err
	}
	then, err := p.Parse(m.Then, o)
	if err != nil {
		return nil, err
	}
	group, err := p.reduction(m.Reduce)
	if err != nil {
		return nil, err
	}
	emit := &Emit{written{"$_internalJsEmit", bson.Build().String("eval", m.Map.Source()).Doc().Value()}, m.Map}
	out.Stages = append(append(out.Stages, emit, group), then.Stages...)
	return out, nil
}

func (p *Parser) reduction(reduce *javascript.Function) (*Group, error) {
	key, err := p.Exprs.Parse(bson.String("$k"), nil)
	if err != nil {
		return nil, err
	}
	value, err := p.Exprs.Parse(bson.String("$v"), nil)
	if err != nil {
		return nil, err
	}
	spec := accumulator.Reduction(p.Accumulators, reduce, key, value)
	text := bson.Build().String("_id", "$k").Value("value", spec.Print()).Doc().Value()
	return &Group{written: written{"$group", text}, ID: key, Fields: []GroupField{{"value", spec}}}, nil
}

func (e *Emit) needs(d *Dependencies) bool { return d.everything() }
