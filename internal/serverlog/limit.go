package serverlog

import (
	"encoding/json"
	"log/slog"
	"unicode/utf8"
)

// maxAttrBytes is how much of an attribute's value a line has, as with mongod's maxLogSizeKB.
const maxAttrBytes = 10 << 10

// escapedBytes is how long a character's escape in JSON is at most.
const escapedBytes = len(`\u001f`)

// Long is an attribute's value that knows what to tell of itself where the whole is too much.
type Long interface {
	// JSONWithin is the value as JSON in about most bytes; truncated says, as JSON too, what is not in it, nil where all is, and size is
	// that of the whole.
	JSONWithin(most int) (text, truncated json.RawMessage, size int)
}

// cuts are what a line says of the values that it does not have whole: mongod's "truncated" and "size", which stand beside the attributes.
type cuts struct{ truncated, sizes []any }

// limited is the record with no value longer than a line may have, and what the line says of those that are.
func limited(r slog.Record) (told slog.Record, beside []slog.Attr) {
	var c cuts
	told = slog.NewRecord(r.Time, r.Level, r.Message, r.PC)
	r.Attrs(func(a slog.Attr) bool {
		told.AddAttrs(slog.Attr{Key: a.Key, Value: c.limit(a.Key, a.Value.Resolve())})
		return true
	})
	if c.truncated == nil {
		return told, nil
	}
	return told, []slog.Attr{slog.Group("truncated", c.truncated...), slog.Group("size", c.sizes...)}
}

// limit is an attribute's value, or what of it fits.
func (c *cuts) limit(key string, v slog.Value) slog.Value {
	switch v.Kind() {
	case slog.KindString:
		return c.limitText(key, v.String(), v)
	case slog.KindAny:
		return c.limitAny(key, v)
	}
	return v
}

func (c *cuts) limitAny(key string, v slog.Value) slog.Value {
	switch x := v.Any().(type) {
	case error:
		return c.limitText(key, x.Error(), v)
	case Long:
		text, truncated, size := x.JSONWithin(maxAttrBytes)
		if truncated != nil {
			c.truncated, c.sizes = append(c.truncated, slog.Any(key, truncated)), append(c.sizes, slog.Int(key, size))
		}
		return slog.AnyValue(text)
	}
	return v
}

// limitText is v, or the beginning of its text.
func (c *cuts) limitText(key, text string, v slog.Value) slog.Value {
	if len(text) <= maxAttrBytes/escapedBytes {
		return v
	}
	size, kept := 0, 0
	for i, char := range text {
		if size <= maxAttrBytes {
			kept = i
		}
		size += escapedLen(char)
	}
	if size <= maxAttrBytes {
		return v
	}
	c.truncated = append(c.truncated, slog.Group(key, "type", "string", "size", size))
	return slog.StringValue(text[:kept])
}

// escapedLen is how long a character is in a string of JSON.
func escapedLen(char rune) int {
	switch {
	case char == '"', char == '\\', char == '\n', char == '\r', char == '\t':
		return 2
	case char < ' ', char == utf8.RuneError, char == '\u2028', char == '\u2029':
		return escapedBytes
	}
	return utf8.RuneLen(char)
}
