package ebb

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/bson"
)

// TestPartedMemberComesBack: a member that nobody could reach for a long time takes part again soon after it can be reached, although what was sent to it
// meanwhile waits on. Members notice that a connection is silent, and open another.
func TestPartedMemberComesBack(t *testing.T) {
	for _, leads := range []bool{false, true} {
		t.Run(fmt.Sprint("leads ", leads), func(t *testing.T) {
			t.Parallel()
			if err := inBubble(t, &simulation{seed: 1, counts: &simCounts{}}, func(s *simulation, dirs []string) error { return s.part(dirs, leads) }); err != nil {
				t.Error(err)
			}
		})
	}
}

// comesBackIn is how long a member may take that can be reached again: calls that have been tried meanwhile come to an end, and another one succeeds.
const comesBackIn = 15 * time.Second

// part has a member be out of reach for some minutes, and waits for it.
func (s *simulation) part(dirs []string, leads bool) error {
	if err := s.begin(dirs); err != nil {
		return err
	}
	if err := s.within(time.Minute, s.isLevel); err != nil {
		return err
	}
	parted := s.leading()
	if parted == nil {
		return errors.New("nobody leads")
	}
	if !leads {
		parted = s.members[(parted.place+1)%simMembers]
	}
	cut := map[[2]int]bool{}
	for i := range simMembers {
		cut[[2]int{i, parted.place}], cut[[2]int{parted.place, i}] = true, true
	}
	s.network.setCut(cut)
	for i := range 20 {
		s.pause(10 * time.Second)
		if err := s.within(time.Minute, func() error {
			_, err := s.admin.atPrimary("d", bson.MustDoc(fmt.Sprintf(`{update: "r", updates: [{q: {_id: %d}, u: {$set: {a: 1}}, upsert: true}]}`, i)), simCall)
			return err
		}); err != nil {
			return fmt.Errorf("the others take no writes: %w", err)
		}
	}
	s.network.setCut(nil)
	return s.within(comesBackIn, s.isLevel)
}
