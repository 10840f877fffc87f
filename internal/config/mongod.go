package config

import (
	"math"
	"strconv"
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
)

// Profiling is what counts as slow, and what is profiled in databases that say nothing of it.
type Profiling struct {
	// Level is 0 for nothing, 1 for what is slow, 2 for everything.
	Level int
	// SlowMillis is from how many milliseconds on an operation is slow, and SampleRate which part of those is told of.
	SlowMillis int
	SampleRate float64
}

// What the profiler goes by where nothing is said.
const (
	defaultSlowMillis = 100
	defaultSampleRate = 1
)

// mongodOptions are those of mongod that a server of any kind has.
func mongodOptions() []option {
	return []option{
		{"operationProfiling.mode", "", "", profilingMode},
		{"operationProfiling.slowOpThresholdMs", "slowms", "`milliseconds` from which on an operation is slow, 100 by default",
			intOption(math.MinInt32, math.MaxInt32, func(c *Config, v int) { c.Profiling.SlowMillis = v })},
		{"operationProfiling.slowOpSampleRate", "slowOpSampleRate", "which `part` of slow operations is told of, 0 to 1; 1 by default", sampleRate},
		{"processManagement.pidFilePath", "pidfilepath", "`file` to write the process id to",
			stringOption(func(c *Config, v string) { c.PIDFile = v })},
	}
}

// ignoredOptions are those of mongod that configuration files have and that mean nothing here, with the values that are taken: what
// asks for less safety than there is, or for what there is not, is refused.
func ignoredOptions() []option {
	anything := func(string) string { return "" }
	is := func(why string, values ...string) func(string) string {
		return func(text string) string {
			for _, v := range values {
				if text == v {
					return ""
				}
			}
			return why
		}
	}
	boolean := is("it is neither true nor false", "true", "false")
	var out []option
	for _, o := range []struct {
		key   string
		takes func(text string) (why string)
	}{
		{"processManagement.timeZoneInfo", anything},
		{"processManagement.fork", boolean},
		{"storage.directoryPerDB", boolean},
		{"storage.journal.enabled", is("the journal is what makes writes durable, and cannot be switched off", "true")},
		{"storage.journal.commitIntervalMs", numeric},
		{"storage.syncPeriodSecs", numeric},
		{"storage.wiredTiger.engineConfig.directoryForIndexes", boolean},
		{"storage.wiredTiger.engineConfig.journalCompressor", is("it is no compressor", "none", "snappy", "zlib", "zstd")},
		{"storage.wiredTiger.engineConfig.zstdCompressionLevel", numeric},
		{"storage.wiredTiger.indexConfig.prefixCompression", boolean},
		{"net.wireObjectCheck", is("what clients send is always checked", "true")},
		{"net.listenBacklog", numeric},
		{"systemLog.timeStampFormat", is("there are iso8601-local and iso8601-utc", "iso8601-local", "iso8601-utc")},
		{"systemLog.traceAllExceptions", boolean},
		{"systemLog.syslogFacility", anything},
		{"operationProfiling.filter", is("set it with the command profile")},
		{"security.clusterIpSourceAllowlist", is("nobody is let in by an address here")},
		{"security.enableEncryption", is("data are not encrypted on disk by the server", "false")},
		{"sharding.clusterRole", is("there are no shards")},
		{"sharding.archiveMovedChunks", boolean},
	} {
		out = append(out, option{o.key, "", "", ignored(o.takes)})
	}
	return out
}

// ignored takes a value, and notes that it means nothing.
func ignored(takes func(string) string) func(*Config, setting) (bson.Value, error) {
	return func(c *Config, s setting) (bson.Value, error) {
		if why := takes(s.text); why != "" {
			return bson.Value{}, errorf("Bad value for option \"%s\": %q; %s", s.key, s.text, why)
		}
		c.Ignored = append(c.Ignored, Parameter{s.key, s.text})
		switch {
		case s.text == "true" || s.text == "false":
			return bson.Bool(s.text == "true"), nil
		case number(s.text):
			n, _ := strconv.ParseInt(s.text, 10, 64)
			return bson.Int64(n), nil
		}
		return bson.String(s.text), nil
	}
}

// numeric is why a text is no whole number; "" where it is one.
func numeric(text string) string {
	if !number(text) {
		return "it is not a whole number"
	}
	return ""
}

func number(text string) bool {
	_, err := strconv.ParseInt(text, 10, 64)
	return err == nil
}

// isComponentVerbosity says whether a key is that of how much one component logs, which goes by the verbosity of all.
func isComponentVerbosity(key string) bool {
	rest, ok := strings.CutPrefix(key, "systemLog.component.")
	return ok && strings.HasSuffix(rest, ".verbosity") && len(rest) < maxComponentName
}

const maxComponentName = 100

func profilingMode(c *Config, s setting) (bson.Value, error) {
	levels := map[string]int{"off": 0, "slowOp": 1, "all": 2}
	level, ok := levels[s.text]
	if !ok {
		return bson.Value{}, errorf("Bad value for option \"%s\": %q; there are off, slowOp and all", s.key, s.text)
	}
	c.Profiling.Level = level
	return bson.String(s.text), nil
}

func sampleRate(c *Config, s setting) (bson.Value, error) {
	v, err := strconv.ParseFloat(s.text, 64)
	if err != nil || !(v >= 0 && v <= 1) {
		return bson.Value{}, errorf("Error parsing option \"%s\": %q is not between 0 and 1", s.key, s.text)
	}
	c.Profiling.SampleRate = v
	return bson.Double(v), nil
}
