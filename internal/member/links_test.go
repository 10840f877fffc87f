package member

import (
	"testing"

	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

// TestRepeatedAcknowledgements: one that says nothing new waits for what is sent next, and one that includes another takes its place.
func TestRepeatedAcknowledgements(t *testing.T) {
	k := &lane{wake: make(chan struct{}, 1)}
	message := func(kind pb.MessageType, term, index uint64) *pb.Message {
		return &pb.Message{Type: kind.Enum(), Term: proto.Uint64(term), Index: proto.Uint64(index)}
	}
	rejection := message(pb.MsgAppResp, 2, 5)
	rejection.Reject = proto.Bool(true)
	for _, c := range []struct {
		what     string
		message  *pb.Message
		wakes    bool
		messages int // that wait then
	}{
		{"the first", message(pb.MsgAppResp, 1, 5), true, 1},
		{"the same again", message(pb.MsgAppResp, 1, 5), false, 1},
		{"a later one", message(pb.MsgAppResp, 1, 7), true, 1},
		{"an earlier one", message(pb.MsgAppResp, 1, 6), false, 2},
		{"one of another term", message(pb.MsgAppResp, 2, 5), true, 3},
		{"a rejection", rejection, true, 4},
		{"a repeated one behind that", message(pb.MsgAppResp, 2, 5), false, 5},
		{"the answer to a heartbeat", message(pb.MsgHeartbeatResp, 2, 0), true, 6},
	} {
		k.add(c.message)
		wakes := len(k.wake) > 0
		if wakes {
			<-k.wake
		}
		if wakes != c.wakes || len(k.mu.messages) != c.messages {
			t.Errorf("%s: wakes %v, and %d messages wait", c.what, wakes, len(k.mu.messages))
		}
	}
	k.lost()
	k.add(message(pb.MsgAppResp, 2, 5))
	if len(k.wake) == 0 {
		t.Error("what was lost is not said again")
	}
}
