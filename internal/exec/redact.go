package exec

import (
	"context"
	"encoding/binary"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/pipeline"
)

// redactStage is $redact.
type redactStage struct {
	op    *Op
	stage *pipeline.Redact
	in    Iterator
	buf   []byte
}

func (s *redactStage) Next(ctx context.Context) (bson.Doc, error) {
	for {
		d, err := s.in.Next(ctx)
		if d == nil {
			return nil, err
		}
		if err := interrupted(ctx); err != nil {
			return nil, err
		}
		s.op.Env.Root = d
		out, keep, err := s.document(s.buf[:0], d)
		if err != nil {
			return nil, err
		}
		s.buf = reusable(out)
		if keep {
			return out, s.op.carry(ctx, len(out))
		}
	}
}

// document appends what is left of d, and says whether anything is.
func (s *redactStage) document(dst []byte, d bson.Doc) ([]byte, bool, error) {
	env := s.op.Env
	env.Reset()
	env.Set(s.stage.Current, d.Value())
	v, err := s.stage.Expr.Eval(env)
	if err != nil {
		return dst, false, err
	}
	verdict := ""
	if v.Type == bson.TypeString {
		verdict = v.Str()
	}
	switch verdict {
	case pipeline.RedactKeep:
		return append(dst, d...), true, nil
	case pipeline.RedactPrune:
		return dst, false, nil
	case pipeline.RedactDescend:
		dst, err = s.descend(dst, d, false)
		return dst, true, err
	}
	return dst, false, mongoerr.New(17053, "$redact's expression should not return anything aside from the variables $$KEEP, $$DESCEND, and $$PRUNE, but returned %s",
		v.Computed())
}

// descend appends d, a document or array, with the documents in it redacted.
func (s *redactStage) descend(dst []byte, d bson.Doc, array bool) ([]byte, error) {
	start, n := len(dst), 0
	dst = append(dst, 0, 0, 0, 0)
	for it := d.Iter(); it.Next(); {
		key, v := it.Key(), it.Value()
		if array {
			key = bson.IndexKey(n)
		}
		if v.Type != bson.TypeObject && v.Type != bson.TypeArray {
			dst = appendElement(dst, key, v)
			n++
			continue
		}
		mark, keep := len(dst), true
		var err error
		dst = append(append(append(dst, byte(v.Type)), key...), 0)
		if v.Type == bson.TypeObject {
			dst, keep, err = s.document(dst, v.Doc())
		} else {
			dst, err = s.descend(dst, v.Doc(), true)
		}
		if err != nil {
			return dst, err
		}
		if keep {
			n++
		} else {
			dst = dst[:mark]
		}
	}
	dst = append(dst, 0)
	binary.LittleEndian.PutUint32(dst[start:], uint32(len(dst)-start))
	return dst, nil
}

func (s *redactStage) Close() error { return s.in.Close() }
