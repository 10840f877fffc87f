package command

import (
	"runtime"
	"strconv"
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
)

func buildInfoCommands() []*Command {
	return []*Command{
		{Name: "buildInfo", Aliases: []string{"buildinfo"}, Doc: "Says what was built, and how.", NoAuth: true, Run: buildInfo},
	}
}

func buildInfo(op *Op) (bson.Doc, error) {
	if err := op.noArguments(); err != nil {
		return nil, err
	}
	tls := "Go crypto/tls (" + runtime.Version() + ")"
	b := bson.Build().String("version", op.Version).String("ebbVersion", op.EbbVersion).String("gitVersion", op.GitVersion).
		Strings("modules", nil).String("allocator", "go").String("javascriptEngine", "goja").String("sysInfo", "deprecated").
		Array("versionArray")
	for i, n := range versionArray(op.Version) {
		b.Int32(bson.IndexKey(i), n)
	}
	return b.End().
		Object("openssl").String("running", tls).String("compiled", tls).End().
		Object("buildEnvironment").String("cc", runtime.Compiler).String("target_arch", runtime.GOARCH).String("target_os", runtime.GOOS).End().
		Int32("bits", strconv.IntSize).Bool("debug", false).Int32("maxBsonObjectSize", bson.MaxDocSize).
		Strings("storageEngines", []string{"pebble", "inMemory", "tikv"}).Doc(), nil
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
