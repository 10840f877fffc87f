package command

import "testing"

// TestRowsSayWhatTheyNeed wants each command to say who may run it.
func TestRowsSayWhatTheyNeed(t *testing.T) {
	for _, c := range append(Rows(), testCommands()...) {
		n := &c.Needs
		something := n.Also != nil || len(n.OnCluster)+len(n.OnDatabase)+len(n.OnCollection) > 0
		says := 0
		for _, is := range []bool{c.NoAuth, n.Nothing, something} {
			if is {
				says++
			}
		}
		if says != 1 {
			t.Errorf("%s has to say that anybody may run it (NoAuth), that any user may (Nothing), or what it needs: one of these", c.Name)
		}
	}
}
