package layout

// The measurements of a time series lie in the order of what they measure, then of their time:
//
//	id = the key string of the meta value, or NoMeta | time, 8 bytes | number, 8 bytes
//
// So what one source measured in a while is one stretch of keys. The number tells measurements of one moment apart; it
// counts from 1 in each process, past those that are taken. No key string is the beginning of another, so that what
// follows the meta value is always the last 16 bytes.
const (
	// NoMeta stands for no meta value.
	NoMeta = 1 // before the first byte of every key string
	// SeriesSuffix is the length of what follows the meta value.
	SeriesSuffix = 8 + 8
)

// SeriesTime is the time in the key or id of a measurement.
func SeriesTime(key []byte) int64 { return ReadMillis(key[len(key)-SeriesSuffix:]) }

// SeriesHead is a measurement's key or id without time and number.
func SeriesHead(key []byte) []byte { return key[:len(key)-SeriesSuffix] }
