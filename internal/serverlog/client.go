package serverlog

import "log/slog"

// redacted stands in the log for what clients have said, where it is not to be there.
const redacted = "###"

// clientData is an attribute's value that has something of clients' data in it.
type clientData struct {
	plain any
	// short makes of it what may be told; nil: nothing may.
	short func() any
}

// LogValue is slog.LogValuer's: without redaction it is as it is.
func (c clientData) LogValue() slog.Value { return slog.AnyValue(c.plain) }

// Client marks a value that has, or may have, something of clients' data in it: documents, what is looked for in them, texts of errors.
func Client(v any) slog.LogValuer { return clientData{plain: v} }

// ClientOr is Client of something of which more than nothing may be told.
func ClientOr(v any, short func() any) slog.LogValuer { return clientData{v, short} }

// SetRedaction says whether clients' data is kept out of the log from now on.
func (l *Log) SetRedaction(on bool) { l.redact.Store(on) }

// withoutClients is the record as it may be told.
func (l *Log) withoutClients(r slog.Record) slog.Record {
	if !l.redact.Load() {
		return r
	}
	told := slog.NewRecord(r.Time, r.Level, r.Message, r.PC)
	r.Attrs(func(a slog.Attr) bool {
		if c, ok := a.Value.Any().(clientData); ok {
			a.Value = slog.StringValue(redacted)
			if c.short != nil {
				a.Value = slog.AnyValue(c.short())
			}
		}
		told.AddAttrs(a)
		return true
	})
	return told
}
