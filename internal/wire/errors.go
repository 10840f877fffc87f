package wire

import (
	"fmt"

	"github.com/ebbdb/ebb/internal/mongoerr"
)

// FrameError says why a connection cannot go on: its peer does not speak the protocol, or two sides disagree about
// where a message ends. There is nobody to send an answer to.
type FrameError struct {
	text string
}

func (e *FrameError) Error() string { return e.text }

// ErrHTTP says that the peer speaks HTTP.
var ErrHTTP error = &FrameError{text: "the client speaks HTTP"}

func frameErrorf(format string, args ...any) error {
	return &FrameError{text: fmt.Sprintf(format, args...)}
}

// MongoDB's codes, without names of their own, of what can be wrong with an OP_MSG.
const (
	codeManyBodies        mongoerr.Code = 40430
	codeDuplicateSequence mongoerr.Code = 40431
	codeSectionKind       mongoerr.Code = 40432
	codeDuplicateField    mongoerr.Code = 40433
	codeNoBody            mongoerr.Code = 40587
)
