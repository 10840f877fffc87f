package command

import (
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/parameter"
)

func buildInfoCommands() []*Command {
	return []*Command{
		{Name: "buildInfo", Aliases: []string{"buildinfo"}, Doc: "Says what was built, and how.", Needs: Needs{Nothing: true}, NoAuthIf: tellsTheUnknown, Run: buildInfo},
	}
}

// What buildInfoName says of buildInfo for who has not logged in, where clients have to: it is refused, says the version alone, or all.
const (
	buildInfoName      = "buildInfoAuthMode"
	buildInfoRefused   = "requiresAuth"
	buildInfoVersion   = "versionOnlyIfPreAuth"
	buildInfoEverybody = "allowedPreAuth"
)

// addBuildInfo enters that parameter.
func addBuildInfo(r *parameter.Registry) {
	var mode atomic.Pointer[string]
	mode.Store(new(buildInfoRefused))
	r.Add(&parameter.Parameter{Name: buildInfoName, When: parameter.Both,
		Get: func() bson.Value { return bson.String(*mode.Load()) },
		Set: func(v bson.Value) error {
			name := v.String()
			if v.Type == bson.TypeString {
				name = v.Str()
			}
			for _, known := range [...]string{buildInfoRefused, buildInfoVersion, buildInfoEverybody} {
				if name == known {
					mode.Store(&known)
					return nil
				}
			}
			return mongoerr.New(mongoerr.BadValue, "Invalid value for Server Parameter: '%[1]s' :: caused by :: Enumeration value '%[2]s' for field '%[1]s' is not a valid value.", buildInfoName, name)
		}})
}

// tellsTheUnknown says whether who has not logged in may ask at all.
func tellsTheUnknown(op *Op) bool {
	return op.Params.Lookup(buildInfoName).Get().Str() != buildInfoRefused
}

// tellsVersionAlone says whether whoever asks has not logged in, and may not know more.
func (op *Op) tellsVersionAlone() bool {
	return op.Authorization && op.user() == nil && op.Params.Lookup(buildInfoName).Get().Str() != buildInfoEverybody && !op.mayBootstrap(op.Ctx)
}

func buildInfo(op *Op) (bson.Doc, error) {
	if err := op.noArguments(); err != nil {
		return nil, err
	}
	if op.tellsVersionAlone() {
		return appendVersionArray(bson.Build().String("version", op.Version), op.Version).Doc(), nil
	}
	tls := "Go crypto/tls (" + runtime.Version() + ")"
	b := bson.Build().String("version", op.Version).String("ebbVersion", op.EbbVersion).String("gitVersion", op.GitVersion).
		Strings("modules", nil).String("allocator", "go").String("javascriptEngine", "goja").String("sysInfo", "deprecated")
	return appendVersionArray(b, op.Version).
		Object("openssl").String("running", tls).String("compiled", tls).End().
		Object("buildEnvironment").String("cc", runtime.Compiler).String("target_arch", runtime.GOARCH).String("target_os", runtime.GOOS).End().
		Int32("bits", strconv.IntSize).Bool("debug", false).Int32("maxBsonObjectSize", bson.MaxDocSize).
		Strings("storageEngines", []string{"pebble", "inMemory", "tikv"}).Doc(), nil
}

func appendVersionArray(b *bson.Builder, version string) *bson.Builder {
	b.Array("versionArray")
	for i, n := range versionArray(version) {
		b.Int32(bson.IndexKey(i), n)
	}
	return b.End()
}

// versionArray is a version's three numbers, and 0 for a release.
func versionArray(version string) [4]int32 {
	var array [4]int32
	release, _, _ := strings.Cut(version, "-")
	for i, part := range strings.SplitN(release, ".", 3) {
		n, _ := strconv.ParseInt(part, 10, 32)
		array[i] = int32(n)
	}
	return array
}
