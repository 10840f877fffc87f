package clock

import (
	"testing"
	"time"
)

func TestStepMovesTheWallAlone(t *testing.T) {
	f := NewFake(time.Unix(1000, 0))
	timer := f.NewTimer(time.Minute)
	f.Step(time.Hour)
	if wall, ran := f.Read(); wall.Unix() != 1000+3600 || ran != 0 {
		t.Errorf("after a step it is %v, and %v have passed", wall, ran)
	}
	select {
	case <-timer.C():
		t.Error("a timer has fired, and no time has passed")
	default:
	}
	f.Step(-2 * time.Hour)
	f.Advance(time.Minute)
	<-timer.C()
	if wall, ran := f.Read(); wall.Unix() != 1000-3600+60 || ran != time.Minute {
		t.Errorf("after a minute it is %v, and %v have passed", wall, ran)
	}
}

func TestWallReadsBothAtOnce(t *testing.T) {
	c := Wall()
	first, began := c.Read()
	for range 1000 {
		wall, ran := c.Read()
		if d := wall.Sub(first); d != ran-began {
			t.Fatalf("%v by one, %v by the other", d, ran-began)
		}
	}
}

// TestTurned: what a clock is turned by moves its wall time alone, and does not add up.
func TestTurned(t *testing.T) {
	f := NewFake(time.Unix(1000, 0))
	c := NewTurned(f)
	c.Turn(time.Hour)
	c.Turn(-time.Minute)
	f.Advance(time.Second)
	if wall, ran := c.Read(); wall.Unix() != 1000-60+1 || ran != time.Second || !wall.Equal(c.Now()) {
		t.Errorf("it is %v, or %v, and %v have passed", wall, c.Now(), ran)
	}
}
