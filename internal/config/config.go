// Package config reads a server's settings from the command line and from a file in mongod.conf's shape. It must not
// know what the settings do, nor open anything but that file.
package config

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ebbdb/ebb/internal/audit"
	"github.com/ebbdb/ebb/internal/auth/ldap"
	"github.com/ebbdb/ebb/internal/bson"
)

// Storage engines.
const (
	EnginePebble   = "pebble"
	EngineInMemory = "inMemory"
	EngineTiKV     = "tikv"
)

// DefaultPort is where MongoDB's clients look first, DefaultConsolePort where browsers find the console of a server that is there.
const DefaultPort, DefaultConsolePort = 27017, 27018

// Config is the settings of one server.
type Config struct {
	Net          Net
	Storage      Storage
	Replication  Replication
	SystemLog    SystemLog
	Security     Security
	Audit        audit.Options // without a Destination there is no audit log
	Profiling    Profiling
	SetParameter []Parameter
	// PIDFile is where the process id is written to; "" for nowhere.
	PIDFile string
	// Ignored is what was given and means nothing here.
	Ignored []Parameter

	// Argv is the command line, for getCmdLineOpts.
	Argv []string
	// Parsed is what was set on it and in the file, nested as in the file, for getCmdLineOpts.
	Parsed bson.Doc
}

// Net is where the server listens.
type Net struct {
	Port int
	// BindIP is IP addresses, host names, "*", or paths of Unix domain sockets.
	BindIP []string
	// IPv6 has "*" in BindIP stand for all IPv6 addresses too: "::" is behind it.
	IPv6 bool
	// MaxConns is 0 for as many as the system's limits allow.
	MaxConns int
	// MaxConnsOverride is whose connections MaxConns does not bound: ranges of addresses, and paths of Unix domain sockets.
	MaxConnsOverride []string
	// Compressors are the names that a client may settle on.
	Compressors []string
	TLS         TLS
	UnixSocket  UnixSocket
	Console     Console
	Metrics     Metrics
}

// Storage is where the data is.
type Storage struct {
	DBPath string
	Engine string
	TiKV   TiKV
	// CacheBytes is how much memory data is kept in, 0 for what suits the machine.
	CacheBytes int64
	// BlockCompressor is snappy, zstd or none; "" is snappy.
	BlockCompressor string
	// StartWithDamagedLog goes on without what was written after the store's log was damaged.
	StartWithDamagedLog bool
	// MinFreeBytes must be free on the disk for data to be added, and ReserveBytes are set aside for letting it go; 0 is the
	// default, and what is negative is none.
	MinFreeBytes, ReserveBytes int64
}

// TiKV is the cluster in which the data is with EngineTiKV.
type TiKV struct {
	// PD are the addresses of its placement drivers.
	PD []string
	// Keyspace is where in it the data is, "" for the one called default.
	Keyspace string
	// Advertise is the address by which the other servers on the keyspace reach this one, "" for one made of where it listens.
	Advertise string
	// CAFile, CertificateFile and KeyFile are PEM files for TLS to the cluster; without a CAFile there is none.
	CAFile, CertificateFile, KeyFile string
}

// Replication makes the server a member of a replica set.
type Replication struct {
	// SetName is the set's name, "" for a server that is no member of any.
	SetName string
	// OplogBytes is how large the oplog may be, 0 for what suits the disk.
	OplogBytes int64
	// OplogMinHours is how many hours an entry of the oplog is kept at least; 0 is no such time.
	OplogMinHours float64
	// Initiate has a server that has no configuration yet begin a set of itself alone.
	Initiate bool
	// Advertise is the address by which clients reach the server, "" for one made of where it listens.
	Advertise string
}

// Security is what clients may do.
type Security struct {
	// JavaScript lets them run functions on the server.
	JavaScript bool
	// Authorization is "enabled" where clients have to log in, "disabled" where they do not, and "" as the rest says.
	Authorization string
	// KeyFile holds the key by which members know one another, "" for none.
	KeyFile string
	// LDAP is the directory that knows users' passwords; without servers there is none.
	LDAP ldap.Options
	// ClusterAuthMode is how members show that they are such, "" as by default.
	ClusterAuthMode string
}

// SystemLog is where the log goes and how much of it there is.
type SystemLog struct {
	// Path is "" for standard output.
	Path   string
	Append bool
	// Reopen says that the file is moved by somebody else before it is rotated.
	Reopen    bool
	Quiet     bool
	Verbosity int
}

// Parameter is one --setParameter, its value as text.
type Parameter struct {
	Name, Value string
}

// Default is the settings without a file or flags.
func Default() *Config {
	return &Config{
		Net: Net{Port: DefaultPort, BindIP: []string{"127.0.0.1"}, Compressors: []string{"snappy", "zstd", "zlib"},
			UnixSocket: UnixSocket{Enabled: true, Prefix: "/tmp", Mode: 0o700},
			Console:    Console{BindIP: []string{"127.0.0.1"}},
			Metrics:    Metrics{BindIP: []string{"127.0.0.1"}}},
		Storage:   Storage{DBPath: "data", Engine: EnginePebble},
		Security:  Security{JavaScript: true, LDAP: ldap.Options{Timeout: ldapTimeout * time.Millisecond}},
		Profiling: Profiling{SlowMillis: defaultSlowMillis, SampleRate: defaultSampleRate},
		Parsed:    bson.EmptyDoc,
	}
}

// Error is a setting that cannot be taken.
type Error struct {
	text string
}

func (e *Error) Error() string { return e.text }

func errorf(format string, args ...any) error { return &Error{fmt.Sprintf(format, args...)} }

// setting is one option that was given, by its key in the file.
type setting struct {
	key  string
	text string
}

// Load makes the settings from the file, if flags name one, and then from flags, which win.
func Load(argv []string, flags *Flags) (*Config, error) {
	given, err := flags.settings()
	if err != nil {
		return nil, err
	}
	var all []setting
	if flags.file != "" {
		if all, err = readFile(flags.file); err != nil {
			return nil, err
		}
	}
	all = override(all, given)
	cfg := Default()
	cfg.Argv = withoutPasswords(argv)
	tree := newTree()
	if flags.file != "" {
		tree.put("config", bson.String(flags.file))
	}
	for _, s := range all {
		value, err := cfg.apply(s)
		if err != nil {
			return nil, err
		}
		tree.put(s.key, value)
	}
	cfg.Parsed = tree.doc()
	return cfg, cfg.check(all)
}

// override is base with the settings of top in their place.
func override(base, top []setting) []setting {
	at := map[string]int{}
	for i, s := range base {
		at[s.key] = i
	}
	for _, s := range top {
		if i, ok := at[s.key]; ok {
			base[i] = s
			continue
		}
		at[s.key] = len(base)
		base = append(base, s)
	}
	return base
}

// apply takes one setting and returns its value as getCmdLineOpts shows it.
func (c *Config) apply(s setting) (bson.Value, error) {
	if name, ok := strings.CutPrefix(s.key, setParameterPrefix); ok {
		c.SetParameter = append(c.SetParameter, Parameter{name, s.text})
		return bson.String(s.text), nil
	}
	for _, o := range options() {
		if o.key == s.key {
			return o.parse(c, s)
		}
	}
	if isComponentVerbosity(s.key) {
		return ignored(numeric)(c, s)
	}
	return bson.Value{}, errorf("Unrecognized option: %s", s.key)
}

// check looks at what only makes sense together.
func (c *Config) check(all []setting) error {
	has := func(key string) bool {
		for _, s := range all {
			if s.key == key {
				return true
			}
		}
		return false
	}
	switch {
	case has("systemLog.destination") && c.SystemLog.Path == "":
		return errorf("systemLog.path is required if systemLog.destination is to a file")
	case c.SystemLog.Reopen && !c.SystemLog.Append:
		return errorf("logAppend must equal true if logRotate is set to reopen")
	case has("net.bindIp") && has("net.bindIpAll"):
		return errorf("Cannot use both net.bindIp and net.bindIpAll")
	case c.Replication.SetName == "" && (c.Replication.Initiate || c.Replication.Advertise != "" && c.Storage.Engine != EngineTiKV):
		return errorf("replication.initiate and replication.advertise need replication.replSetName")
	case has("replication.replSet") && has("replication.replSetName"):
		return errorf("Cannot use both replication.replSet and replication.replSetName")
	case strings.Contains(c.Replication.SetName, "/"):
		return errorf("Error parsing option \"replication.replSetName\": %q has a \"/\"; members are not named here", c.Replication.SetName)
	case c.Storage.DBPath == "":
		return errorf("storage.dbPath must not be empty")
	}
	if all := slices.Index(c.Net.BindIP, "*"); all >= 0 && c.Net.IPv6 && !slices.Contains(c.Net.BindIP, "::") {
		c.Net.BindIP = slices.Insert(c.Net.BindIP, all+1, "::")
	}
	if err := c.checkAudit(has); err != nil {
		return err
	}
	if err := c.checkMetrics(has("net.metrics.bindIp")); err != nil {
		return err
	}
	if err := c.checkSecurity(); err != nil {
		return err
	}
	if err := c.checkConsole(has("net.console.port")); err != nil {
		return err
	}
	return c.checkTLS()
}
