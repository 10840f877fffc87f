package storage

import (
	"slices"

	"github.com/ebbdb/ebb/internal/storage/build"
)

// Publish has writers know of a build. The caller holds the collection's lock exclusively, as with Withdraw and Abort.
func (c Collection) Publish(b *build.Underway) {
	b.Publish()
	builds := append(slices.Clone(c.own.state.building()), b)
	c.own.state.builds.Store(&builds)
}

// Withdraw ends writers' knowledge of a build, if they have any.
func (c Collection) Withdraw(b *build.Underway) { c.own.withdraw(b) }

// Abort ends a build for good.
func (c Collection) Abort(b *build.Underway, why string) { c.own.abort(b, why) }

func (c *collection) withdraw(b *build.Underway) {
	builds := slices.DeleteFunc(slices.Clone(c.state.building()), func(o *build.Underway) bool { return o == b })
	c.state.builds.Store(&builds)
}

func (c *collection) abort(b *build.Underway, why string) {
	b.Abort(why)
	c.withdraw(b)
}

// abortBuilds ends all builds of the collection, whose lock is held exclusively.
func (c *collection) abortBuilds(why string) {
	for _, b := range c.state.building() {
		c.abort(b, why)
	}
}

// refuseWhileBuilding is the error of what cannot be done to the collection while an index is built. It may be nil.
func (c *collection) refuseWhileBuilding() error {
	if c == nil || len(c.state.building()) == 0 {
		return nil
	}
	return c.state.building()[0].Refuse()
}

// building are the builds that writers have to know of.
func (s *collectionState) building() []*build.Underway {
	if p := s.builds.Load(); p != nil {
		return *p
	}
	return nil
}
