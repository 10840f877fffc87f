package config

import (
	"math"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/wire"
)

// setParameterPrefix stands before the name of a parameter in a setting's key.
const setParameterPrefix = "setParameter."

// Limits of what may be set.
const (
	maxPort      = 65535
	maxVerbosity = 5
	// minConns is mongod's least; the most is its default where no system limit is lower.
	minConns = 5
	maxConns = 1_000_000
	// The cache has the limits of WiredTiger's.
	minCacheGB = 0.25
	maxCacheGB = 10_000
	// maxDiskMB is mongod's for space on disk, 8 TB.
	maxDiskMB = 8 << 20
	// maxRetentionHours is a hundred years.
	maxRetentionHours = 100 * 366 * 24
)

// negation stands before a flag that says the opposite of the key.
const negation = "!"

// option is one row: its key in the file, its flag ("" has none), one sentence of help, and what takes it. The help has
// the name of what follows the flag between back quotes; a flag that nothing follows has none.
type option struct {
	key, flag, help string
	parse           func(*Config, setting) (bson.Value, error)
}

// isSwitch says whether nothing follows the flag.
func (o *option) isSwitch() bool { return !strings.Contains(o.help, "`") }

// options is the table of everything that can be set, but for the parameters of setParameter.
func options() []option {
	return slices.Concat([]option{
		{"net.port", "port", "port `number` to listen on, 27017 by default; 0 takes a free one",
			intOption(0, maxPort, func(c *Config, v int) { c.Net.Port = v })},
		{"net.bindIp", "bind_ip", "comma-separated `addresses` to listen on, 127.0.0.1 by default",
			bindIP},
		{"net.bindIpAll", "bind_ip_all", "listen on all IPv4 addresses, with --ipv6 on those of IPv6 too",
			boolOption(func(c *Config, v bool) {
				if v {
					c.Net.BindIP = []string{"*"}
				}
			})},
		{"net.ipv6", "ipv6", "listen on all IPv6 addresses too, where it is all IPv4 addresses",
			boolOption(func(c *Config, v bool) { c.Net.IPv6 = v })},
		{"net.maxIncomingConnections", "maxConns", "largest `number` of connections at one time",
			intOption(minConns, maxConns, func(c *Config, v int) { c.Net.MaxConns = v })},
		{"net.maxIncomingConnectionsOverride", "", "", connsOverride},
		{"net.compression.compressors", "networkMessageCompressors", "comma-separated `names` of compressors to offer, snappy,zstd,zlib by default; \"disabled\" for none",
			compressors},
		{"storage.dbPath", "dbpath", "`directory` of the data, ./data by default; it is made when missing",
			stringOption(func(c *Config, v string) { c.Storage.DBPath = v })},
		{"storage.engine", "storageEngine", "storage `engine`, pebble (default), inMemory or tikv (experimental)",
			engine},
		{"storage.wiredTiger.engineConfig.cacheSizeGB", "wiredTigerCacheSizeGB", "`gigabytes` of memory to keep data in, a quarter of the machine's or the container's by default",
			cacheSize},
		{"storage.wiredTiger.collectionConfig.blockCompressor", "wiredTigerCollectionBlockCompressor", "`compressor` of what is stored from now on, indexes too: snappy (default) for one that is quick, zstd or zlib for one that makes less of it, none",
			blockCompressor},
		{"storage.ttlHoldAt", "ttlHoldAt", "hold expiry at a `time`: a date (2026-01-02T03:04:05Z), or lastWrite; until setParameter ttlHold: \"release\"",
			stringOption(func(c *Config, v string) { c.SetParameter = append(c.SetParameter, Parameter{"ttlHold", v}) })},
		{"storage.startWithDamagedLog", "startWithDamagedLog", "open a store whose log is damaged as it was before the first write that is lost; for one start, by somebody who knows",
			boolOption(func(c *Config, v bool) { c.Storage.StartWithDamagedLog = v })},
		{"storage.pebble.minFreeDiskSpaceMB", "minFreeDiskSpaceMB", "`megabytes` of the disk that must be free for data to be added, 512 by default and a quarter of the disk at most; 0 sets no limit",
			diskSpace(func(c *Config, bytes int64) { c.Storage.MinFreeBytes = bytes })},
		{"storage.pebble.diskReserveMB", "diskReserveMB", "`megabytes` of the disk to set aside for letting data go when it is full, 256 by default and a quarter of the disk at most; 0 for none",
			diskSpace(func(c *Config, bytes int64) { c.Storage.ReserveBytes = bytes })},
		{"replication.replSetName", "replSet", "`name` of the replica set that the server is a member of",
			stringOption(func(c *Config, v string) { c.Replication.SetName = v })},
		{"replication.replSet", "", "",
			stringOption(func(c *Config, v string) { c.Replication.SetName = v })},
		{"replication.oplogSizeMB", "oplogSize", "`megabytes` of the oplog, 5 % of the free disk by default, 990 at least and 50 GB at most",
			intOption(1, maxDiskMB, func(c *Config, v int) { c.Replication.OplogBytes = int64(v) << 20 })},
		{"storage.oplogMinRetentionHours", "oplogMinRetentionHours", "`hours`, or parts of one, that an entry of the oplog is kept at least; 0, the default, leaves it to the oplog's size",
			retention},
		{"replication.enableMajorityReadConcern", "enableMajorityReadConcern", "majority read concern, which is always there; only for command lines that say so",
			majorityReads},
		{"replication.initiate", "replSetInitiate", "begin a replica set of this server alone, where none has begun",
			boolOption(func(c *Config, v bool) { c.Replication.Initiate = v })},
		{"replication.advertise", "advertise", "`address` (host:port) by which the members and clients of the replica set reach this server",
			advertise},
		{"systemLog.destination", "", "",
			logDestination},
		{"systemLog.path", "logpath", "`file` to log to instead of standard output",
			stringOption(func(c *Config, v string) { c.SystemLog.Path = v })},
		{"systemLog.logAppend", "logappend", "append to the log file; without it a new one is begun and the old one kept beside it",
			boolOption(func(c *Config, v bool) { c.SystemLog.Append = v })},
		{"systemLog.logRotate", "logRotate", "what SIGUSR1 and logRotate do with the log `file`: rename it (default), or reopen it, for somebody else has",
			logRotate},
		{"systemLog.quiet", "quiet", "log less: nothing about connections that come and go",
			boolOption(func(c *Config, v bool) { c.SystemLog.Quiet = v })},
		{"security.javascriptEnabled", negation + "noscripting", "refuse JavaScript: $where, $function, $accumulator and mapReduce",
			boolOption(func(c *Config, v bool) { c.Security.JavaScript = v })},
		{"systemLog.verbosity", "", "",
			intOption(0, maxVerbosity, func(c *Config, v int) { c.SystemLog.Verbosity = v })},
	}, tikvOptions(), consoleOptions(), securityOptions(), auditOptions(), ldapOptions(), tlsOptions(), socketOptions(), metricsOptions(), mongodOptions(), ignoredOptions())
}

func stringOption(set func(*Config, string)) func(*Config, setting) (bson.Value, error) {
	return func(c *Config, s setting) (bson.Value, error) {
		if s.text == "" {
			return bson.Value{}, errorf("Missing value for option \"%s\"", s.key)
		}
		set(c, s.text)
		return bson.String(s.text), nil
	}
}

// wordOption takes one of some words.
func wordOption(set func(*Config, string), words ...string) func(*Config, setting) (bson.Value, error) {
	return func(c *Config, s setting) (bson.Value, error) {
		if !slices.Contains(words, s.text) {
			return bson.Value{}, errorf("Bad value for option \"%s\": %q", s.key, s.text)
		}
		set(c, s.text)
		return bson.String(s.text), nil
	}
}

func intOption(least, most int, set func(*Config, int)) func(*Config, setting) (bson.Value, error) {
	return func(c *Config, s setting) (bson.Value, error) {
		v, err := strconv.Atoi(s.text)
		if err != nil {
			return bson.Value{}, errorf("Error parsing option \"%s\" as int: %q is not a whole number", s.key, s.text)
		}
		if v < least || v > most {
			return bson.Value{}, errorf("Error parsing option \"%s\": %d is not between %d and %d", s.key, v, least, most)
		}
		set(c, v)
		return bson.Int32(int32(v)), nil
	}
}

// diskSpace takes megabytes; none is -1, for 0 is the default.
func diskSpace(set func(*Config, int64)) func(*Config, setting) (bson.Value, error) {
	return intOption(0, maxDiskMB, func(c *Config, v int) {
		if v == 0 {
			v = -1
		}
		set(c, int64(v)<<20)
	})
}

func boolOption(set func(*Config, bool)) func(*Config, setting) (bson.Value, error) {
	return func(c *Config, s setting) (bson.Value, error) {
		if s.text != "true" && s.text != "false" {
			return bson.Value{}, errorf("Error parsing option \"%s\" as bool: %q is neither true nor false", s.key, s.text)
		}
		set(c, s.text == "true")
		return bson.Bool(s.text == "true"), nil
	}
}

func bindIP(c *Config, s setting) (bson.Value, error) {
	var hosts []string
	for host := range strings.SplitSeq(s.text, ",") {
		host = strings.TrimSpace(host)
		switch {
		case host == "":
			return bson.Value{}, errorf("Error parsing option \"%s\": %q has an empty address", s.key, s.text)
		case filepath.IsAbs(host): // a Unix domain socket
		case strings.ContainsAny(host, ":") && net.ParseIP(host) == nil:
			return bson.Value{}, errorf("Error parsing option \"%s\": %q is not an address (the port is an option of its own)", s.key, host)
		}
		hosts = append(hosts, host)
	}
	c.Net.BindIP = hosts
	return bson.String(s.text), nil
}

func connsOverride(c *Config, s setting) (bson.Value, error) {
	var said []bson.Value
	for _, who := range strings.Split(s.text, ",") {
		if who = strings.TrimSpace(who); who == "" {
			return bson.Value{}, errorf("Error parsing option \"%s\": %q has an empty address", s.key, s.text)
		}
		c.Net.MaxConnsOverride = append(c.Net.MaxConnsOverride, who)
		said = append(said, bson.String(who))
	}
	return bson.ArrayOf(said...), nil
}

func compressors(c *Config, s setting) (bson.Value, error) {
	c.Net.Compressors = []string{}
	if s.text == "disabled" {
		return bson.String(s.text), nil
	}
	for name := range strings.SplitSeq(s.text, ",") {
		name = strings.TrimSpace(name)
		if _, ok := wire.CompressorNamed(name); !ok {
			return bson.Value{}, errorf("Invalid network message compressor specified in configuration: %s", name)
		}
		c.Net.Compressors = append(c.Net.Compressors, name)
	}
	return bson.String(s.text), nil
}

func advertise(c *Config, s setting) (bson.Value, error) {
	host, port, err := net.SplitHostPort(s.text)
	if n, bad := strconv.Atoi(port); err != nil || host == "" || bad != nil || n < 1 || n > maxPort {
		return bson.Value{}, errorf("Error parsing option \"%s\": %q is not host:port", s.key, s.text)
	}
	c.Replication.Advertise = s.text
	return bson.String(s.text), nil
}

func retention(c *Config, s setting) (bson.Value, error) {
	v, err := strconv.ParseFloat(s.text, 64)
	if err != nil || math.IsNaN(v) {
		return bson.Value{}, errorf("Error parsing option \"%s\" as double: %q is not a number", s.key, s.text)
	}
	if v < 0 || v > maxRetentionHours {
		return bson.Value{}, errorf("Error parsing option \"%s\": %s is not between 0 and %d", s.key, s.text, maxRetentionHours)
	}
	c.Replication.OplogMinHours = v
	return bson.Double(v), nil
}

func majorityReads(c *Config, s setting) (bson.Value, error) {
	if s.text == "false" {
		return bson.Value{}, errorf("enableMajorityReadConcern:false is no longer supported")
	}
	return boolOption(func(*Config, bool) {})(c, s)
}

func engine(c *Config, s setting) (bson.Value, error) {
	if s.text == "wiredTiger" { // as files say that were written for mongod
		c.Ignored = append(c.Ignored, Parameter{s.key, s.text})
		c.Storage.Engine = EnginePebble
		return bson.String(s.text), nil
	}
	if s.text != EnginePebble && s.text != EngineInMemory && s.text != EngineTiKV {
		return bson.Value{}, errorf("Cannot start server with an unknown storage engine: %s", s.text)
	}
	c.Storage.Engine = s.text
	return bson.String(s.text), nil
}

func cacheSize(c *Config, s setting) (bson.Value, error) {
	v, err := strconv.ParseFloat(s.text, 64)
	if err != nil || math.IsNaN(v) {
		return bson.Value{}, errorf("Error parsing option \"%s\" as double: %q is not a number", s.key, s.text)
	}
	if v < minCacheGB || v > maxCacheGB {
		return bson.Value{}, errorf("Error parsing option \"%s\": %s is not between %v and %d", s.key, s.text, minCacheGB, maxCacheGB)
	}
	c.Storage.CacheBytes = int64(v * (1 << 30))
	return bson.Double(v), nil
}

func blockCompressor(c *Config, s setting) (bson.Value, error) {
	switch s.text {
	case "snappy", "none", "zstd":
		c.Storage.BlockCompressor = s.text
	case "zlib": // who asks for it wants what takes less room
		c.Storage.BlockCompressor = "zstd"
	default:
		return bson.Value{}, errorf("Bad value for option \"%s\": %q; there are none, snappy, zlib and zstd", s.key, s.text)
	}
	return bson.String(s.text), nil
}

func logRotate(c *Config, s setting) (bson.Value, error) {
	if s.text != "rename" && s.text != "reopen" {
		return bson.Value{}, errorf("unknown value for logRotate '%s'", s.text)
	}
	c.SystemLog.Reopen = s.text == "reopen"
	return bson.String(s.text), nil
}

func logDestination(_ *Config, s setting) (bson.Value, error) {
	if s.text != "file" {
		return bson.Value{}, errorf("Bad value for option \"%s\": %q; only \"file\" is supported", s.key, s.text)
	}
	return bson.String(s.text), nil
}
