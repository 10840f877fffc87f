// Package mongoerr holds the errors that clients see: MongoDB's codes, their names, labels and details. It knows nothing
// of what goes wrong, only how MongoDB says it.
package mongoerr

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"syscall"

	"github.com/ebbdb/ebb/internal/bson"
)

// Code is one of MongoDB's error codes.
type Code int32

// Name is the codeName of c; codes without a name of their own are "Location<code>".
func (c Code) Name() string {
	if n, ok := names[c]; ok {
		return n
	}
	return "Location" + strconv.Itoa(int(c))
}

// Error is an error with MongoDB's code.
type Error struct {
	Code    Code
	Message string
	// Labels are error labels such as TransientTransactionError.
	Labels []string
	// Info is the errInfo of a write error, or nil.
	Info bson.Doc
	// Extra are further fields of the reply or write error (keyPattern, keyValue of a duplicate key), or nil.
	Extra bson.Doc
	// early: see Early.
	early bool
	// unparsed: see Unparsed.
	unparsed bool
	// cause is what During was given.
	cause error
}

// Unwrap is what the plan failed with of whose end e tells.
func (e *Error) Unwrap() error { return e.cause }

func (e *Error) Error() string { return e.Message }

// New makes an error of code c; the message is formatted as by fmt.Sprintf.
func New(c Code, format string, args ...any) *Error {
	if len(args) == 0 {
		return &Error{Code: c, Message: format}
	}
	return &Error{Code: c, Message: fmt.Sprintf(format, args...)}
}

// WithInfo is e with an errInfo.
func (e *Error) WithInfo(info bson.Doc) *Error {
	c := *e
	c.Info = info
	return &c
}

// WithExtra is e with further fields.
func (e *Error) WithExtra(extra bson.Doc) *Error {
	c := *e
	c.Extra = extra
	return &c
}

// Early is e as one that MongoDB finds before it runs a plan, so that During adds nothing to it.
func (e *Error) Early() *Error {
	c := *e
	c.early = true
	return &c
}

// Unparsed is e as one that MongoDB finds while it parses the command, before it asks for the session.
func (e *Error) Unparsed() *Error {
	c := *e
	c.unparsed = true
	return &c
}

// IsUnparsed says whether err is one that Unparsed has made.
func IsUnparsed(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.unparsed
}

// During is err as the end of a plan, with what was run before it.
func During(what string, err error) error {
	e := *From(err)
	if e.cause = err; !e.early {
		e.Message = what + " :: caused by :: " + e.Message
	}
	return &e
}

// DuringWrite is what During says of the plan of a write: of an update, a delete or a findAndModify.
func DuringWrite(write string) string { return "Plan executor error during " + write }

// Prefix is err with a text before its message, when it is an *Error; others are wrapped.
func Prefix(text string, err error) error {
	var e *Error
	if errors.As(err, &e) {
		c := *e
		c.Message = text + e.Message
		return &c
	}
	return fmt.Errorf("%s%w", text, err)
}

// From is err as an *Error: itself when it is one, with the code that an error within it says it has, the code of an ended
// context or of a full disk, else InternalError.
func From(err error) *Error {
	var e *Error
	var coded interface{ Code() Code }
	switch {
	case errors.As(err, &e):
		return e
	case errors.As(err, &coded):
		return New(coded.Code(), "%s", err.Error())
	case errors.Is(err, context.DeadlineExceeded):
		return New(MaxTimeMSExpired, "operation exceeded time limit")
	case errors.Is(err, context.Canceled):
		return New(Interrupted, "operation was interrupted")
	case errors.Is(err, syscall.ENOSPC):
		return New(OutOfDiskSpace, "%s", err.Error())
	}
	return New(InternalError, "%s", err.Error())
}

// Reply is err as a reply of a command.
func Reply(err error) bson.Doc {
	e := From(err)
	b := bson.Build().Double("ok", 0).String("errmsg", e.Message).Int32("code", int32(e.Code)).String("codeName", e.Code.Name())
	if e.Info != nil {
		b.Document("errInfo", e.Info)
	}
	b.Fields(e.Extra)
	if len(e.Labels) > 0 {
		b.Strings("errorLabels", e.Labels)
	}
	return b.Doc()
}

// Is says whether err is an *Error of code c.
func Is(err error, c Code) bool {
	if err == nil {
		return false // without the allocation below
	}
	var e *Error
	return errors.As(err, &e) && e.Code == c
}
