package serverlog

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"
)

// handler makes lines of records, and hands the records on to somebody else's handler, if there is one.
type handler struct {
	log   *Log
	lines slog.Handler
	next  slog.Handler // or nil
	// Of a component, top is what lines are made by before there is a context, and under are attributes that all lines have.
	top   slog.Handler
	under []slog.Attr
}

// Of is the Log behind a logger. A logger that is none of a Log's gets one, which keeps the last lines and hands every
// record on to it, in so far as it wants it. With nil nothing is handed on.
func Of(logger *slog.Logger) *Log {
	if logger == nil {
		return Discard()
	}
	if h, ok := logger.Handler().(*handler); ok {
		return h.log
	}
	l := New(io.Discard, 0)
	l.root = slog.New(&handler{log: l, lines: l.jsonLines(), next: logger.Handler()})
	return l
}

// Enabled says whether either wants records of the level. How much the Log keeps says nothing about what the other wants.
func (h *handler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.lines.Enabled(ctx, level) || h.next != nil && h.next.Enabled(ctx, level)
}

// Handle gives the record to those who want it.
func (h *handler) Handle(ctx context.Context, r slog.Record) error {
	r, beside := limited(h.log.withoutClients(r))
	var err, other error
	if h.lines.Enabled(ctx, r.Level) {
		err = h.handle(ctx, r.Clone(), beside)
	}
	if h.next != nil && h.next.Enabled(ctx, r.Level) {
		r.AddAttrs(beside...)
		other = h.next.Handle(ctx, r)
	}
	return errors.Join(err, other)
}

// handle makes a line. What stands beside the attributes comes after them.
func (h *handler) handle(ctx context.Context, r slog.Record, beside []slog.Attr) error {
	if h.top == nil {
		r.AddAttrs(beside...)
		return h.lines.Handle(ctx, r)
	}
	name, rest := contextOf(r)
	if name == "" && beside == nil {
		return h.lines.Handle(ctx, r)
	}
	top := h.top.WithAttrs([]slog.Attr{slog.String(contextKey, cmp.Or(name, noContext))})
	if beside == nil {
		return top.WithGroup(attrGroup).WithAttrs(h.under).Handle(ctx, rest)
	}
	attrs := slices.Clone(h.under)
	rest.Attrs(func(a slog.Attr) bool {
		attrs = append(attrs, a)
		return true
	})
	line := slog.NewRecord(rest.Time, rest.Level, rest.Message, rest.PC)
	line.AddAttrs(slog.Attr{Key: attrGroup, Value: slog.GroupValue(attrs...)})
	line.AddAttrs(beside...)
	return top.Handle(ctx, line)
}

// WithAttrs is slog.Handler's.
func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	n := h.both(func(to slog.Handler) slog.Handler { return to.WithAttrs(attrs) })
	if n.top = h.top; n.top != nil {
		n.under = append(slices.Clone(h.under), attrs...)
	}
	return n
}

// WithGroup is slog.Handler's.
func (h *handler) WithGroup(name string) slog.Handler {
	n := h.both(func(to slog.Handler) slog.Handler { return to.WithGroup(name) })
	if name == attrGroup && h.top == nil {
		n.top = h.lines
		n.lines = h.lines.WithAttrs([]slog.Attr{slog.String(contextKey, noContext)}).WithGroup(name)
	}
	return n
}

func (h *handler) both(change func(slog.Handler) slog.Handler) *handler {
	n := &handler{log: h.log, lines: change(h.lines)}
	if h.next != nil {
		n.next = change(h.next)
	}
	return n
}
