package command

import (
	"context"
	"math"
	"time"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/replset"
)

// noGroup is the Group of a Server that nobody has given one: it takes no other members.
type noGroup struct{}

var errNoGroup = mongoerr.New(mongoerr.IllegalOperation, "this server takes no other members")

func (noGroup) Leader() (string, int64, bool)                                   { return "", 0, false }
func (noGroup) Check(context.Context, string, replset.Member) error             { return errNoGroup }
func (noGroup) Begin(context.Context, *replset.Config, int, func() error) error { return errNoGroup }
func (noGroup) Ask(context.Context, string, bson.Doc) (bson.Doc, error)         { return nil, errNoGroup }
func (noGroup) Health(string) Health                                            { return Health{} }
func (noGroup) Elections() Elections                                            { return Elections{} }
func (noGroup) Votes(int64) bool                                                { return true }
func (noGroup) AwaitRead(context.Context) error                                 { return errNoGroup }
func (noGroup) AwaitApplied(context.Context, func() bool) error                 { return errNoGroup }
func (noGroup) Place(_ *replset.Config, byAddress func() int) int               { return byAddress() }
func (noGroup) IsEmpty() bool                                                   { return false }
func (noGroup) HearTime(int64)                                                  {}
func (noGroup) SeenTime() int64                                                 { return math.MinInt64 }
func (noGroup) IsCurrent() bool                                                 { return true }
func (noGroup) StepUp(context.Context) error                                    { return errNoGroup }
func (noGroup) Freeze(time.Duration)                                            {}
func (noGroup) StepDown(_ context.Context, _, _ time.Duration, _ bool) error    { return errNoGroup }
func (noGroup) AwaitMembers(context.Context, uint64, func(func(int64) bool) bool) error {
	return errNoGroup
}
