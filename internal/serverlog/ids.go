package serverlog

import "log/slog"

// idOf is mongod's number of a message, by which tools know it; 0 for those that are not mongod's, or not by number.
func idOf(message string) int {
	switch message {
	case "Connection accepted":
		return 22943
	case "Connection ended":
		return 22944
	case "client metadata":
		return 51800
	case "Waiting for connections":
		return 23016
	case "Slow query":
		return 51803
	case "transaction":
		return 51802
	case "Successfully authenticated":
		return 5286306
	case "Failed to authenticate":
		return 5286307
	case "Successfully set parameter to new value":
		return 23435
	case "Log rotation initiated":
		return 23166
	case "Shutting down":
		return 23138
	case "Now exiting":
		return 20565
	case "Access control is not enabled for the database. Read and write access to data and configuration is unrestricted":
		return 22120
	case "You are running this process as the root user, which is not recommended":
		return 22138
	case "Soft rlimits for open file descriptors too low":
		return 22184
	case "Deleted expired documents using index":
		return 5479200
	}
	return 0
}

// text is a message that has its number.
type text string

// MarshalText is encoding.TextMarshaler's.
func (t text) MarshalText() ([]byte, error) { return []byte(t), nil }

// numbered is a message with its number before it, where it has one.
func numbered(message slog.Attr) slog.Attr {
	if message.Value.Kind() != slog.KindString {
		return message
	}
	id := idOf(message.Value.String())
	if id == 0 {
		return message
	}
	return slog.Group("", slog.Int("id", id), slog.Any(message.Key, text(message.Value.String())))
}

// contextKey is the attribute that says which connection or thread a line is of: it stands beside the attributes, as in mongod's.
const contextKey = "ctx"

// noContext stands for none.
const noContext = "-"

// contextOf takes the context out of a record.
func contextOf(r slog.Record) (name string, rest slog.Record) {
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == contextKey && a.Value.Kind() == slog.KindString {
			name = a.Value.String()
		}
		return name == ""
	})
	if name == "" {
		return "", r
	}
	rest = slog.NewRecord(r.Time, r.Level, r.Message, r.PC)
	r.Attrs(func(a slog.Attr) bool {
		if a.Key != contextKey {
			rest.AddAttrs(a)
		}
		return true
	})
	return name, rest
}
