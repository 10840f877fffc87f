package command

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/storage/indexddl"
	"github.com/ebbdb/ebb/internal/ttl"
	"github.com/ebbdb/ebb/internal/ttl/policy"
)

// maxPreviewSample is how many documents a dry run shows.
const maxPreviewSample = 100

// preview is what a dry run shows beside its numbers.
type preview struct {
	sample  int          // documents that would expire; -1 when none are asked for
	horizon *ttl.Horizon // of a forecast before and after; nil when it is not asked for
}

// readPreview reads what is asked for beside "dryRun"; nil when nothing is. The stable API does not know it, nor does who changes something.
func (op *Op) readPreview(a *Args, dryRun bool) *preview {
	if op.APIStrict || !dryRun {
		return nil
	}
	p := &preview{sample: -1}
	if n, ok := a.IntIn("sample", 0, maxPreviewSample); ok {
		p.sample = int(n)
	}
	p.horizon = op.horizon(a, nil)
	if p.sample < 0 && p.horizon == nil {
		return nil
	}
	return p
}

func (op *Op) appendPreview(b *bson.Builder, h *indexddl.DryRun, p *preview) error {
	if p == nil {
		return nil
	}
	var sample []ttl.Sampled
	var before, after []ttl.Forecast
	if h.Of != nil && h.Next != nil {
		view, err := op.Query.Store.ViewAt(op.Ctx, op.Now)
		if err != nil {
			return err
		}
		defer view.Close()
		if r, ok := view.CollectionByID(h.Of.ID); ok {
			if p.sample > 0 {
				if sample, err = ttl.WouldExpire(r, h.Expiring.TTLs, p.sample); err != nil {
					return err
				}
			}
			if p.horizon != nil {
				all := op.flag("ttlHideExpired")
				if _, before, err = ttl.Forecasts(r, *p.horizon, all); err != nil {
					return err
				}
				if _, after, err = ttl.ForecastsAs(r, h.Next, *p.horizon, all); err != nil {
					return err
				}
			}
		}
	}
	if p.sample >= 0 {
		b.Array("sample")
		for i, s := range sample {
			b.Object(bson.IndexKey(i)).Value("_id", s.ID).Date("deadline", s.Deadline)
			appendRuleName(b, s.Rule.Name(), s.Rule.Kind == policy.Series)
			b.End()
		}
		b.End()
	}
	if p.horizon != nil {
		b.Object("forecast").Date("now", p.horizon.Now).Date("until", p.horizon.Until)
		for _, side := range [...]struct {
			name string
			of   []ttl.Forecast
		}{{"before", before}, {"after", after}} {
			b.Array(side.name)
			for i := range side.of {
				b.Object(bson.IndexKey(i))
				appendForecast(b, &side.of[i], p.horizon.Now)
				b.End()
			}
			b.End()
		}
		b.End()
	}
	return nil
}
