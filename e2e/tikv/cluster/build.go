// Package cluster runs a TiKV cluster on this machine for tests: PD and stores, which it builds from the modules in tests/tikv. It does not know
// what is done with the cluster.
package cluster

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

// program is one of those that a cluster consists of.
type program struct {
	name, pkg string
	files     []string // beside go.mod and go.sum
	flags     []string
	mends     []mend
}

// mend changes a vendored file of a program before it is built.
type mend struct{ file, old, new string }

// programs are built from the module of their name.
func programs() map[string]program {
	return map[string]program{
		"pd": {name: "pd", pkg: "github.com/tikv/pd/cmd/pd-server", flags: []string{"-tags", "without_dashboard"}},
		"store": {name: "store", pkg: "github.com/ngaut/unistore/cmd/unistore-server", files: []string{"health.go"},
			// An old parser looks into the runtime, and old descriptors of messages are registered twice.
			flags: []string{"-ldflags=-checklinkname=0 -X google.golang.org/protobuf/reflect/protoregistry.conflictPolicy=ignore"},
			mends: []mend{{
				// A scan backwards has to read at its timestamp, not what is youngest.
				file: "vendor/github.com/pingcap/tidb/store/mockstore/unistore/tikv/dbreader/db_reader.go",
				old:  "\titer := r.getReverseIter()\n\tr.txn.SetReadTS(startTS)\n",
				new:  "\tr.txn.SetReadTS(startTS)\n\titer := r.getReverseIter()\n",
			}, {
				// It has this command and does not answer it among others, and a command that it does not know has to fail, not the store.
				file: "vendor/github.com/pingcap/tidb/store/mockstore/unistore/tikv/server_batch.go",
				old:  "\t}\n\treturn nil, nil\n}\n",
				new:  secondaryLocks + "\t}\n\treturn nil, io.ErrUnexpectedEOF\n}\n",
			}, {
				// What is committed in one phase, or prewritten for async commit, gets its timestamp before it can be seen, and who reads at a later
				// one meanwhile misses it, and sees it when it reads again. Of two clients that take what is free both get it. TiKV has such a
				// reader wait (concurrency manager).
				file: storeMVCC,
				old:  "\t\"sort\"\n\t\"sync/atomic\"\n",
				new:  "\t\"sort\"\n\t\"sync\"\n\t\"sync/atomic\"\n",
			}, {
				file: storeMVCC,
				old:  "// MVCCStore is a wrapper of badger.DB to provide MVCC functions.\ntype MVCCStore struct {\n",
				new:  storeFlights + "// MVCCStore is a wrapper of badger.DB to provide MVCC functions.\ntype MVCCStore struct {\n\tflights flights\n",
			}, {
				file: storeMVCC,
				old:  "\tif req.UseAsyncCommit || req.TryOnePc {\n",
				new:  "\tif req.UseAsyncCommit || req.TryOnePc {\n\t\tdefer store.flights.begin(req.StartVersion, mutations)()\n",
			}, {
				file: storeMVCC,
				old:  "\tvar buf []byte\n\tfor _, key := range keys {\n\t\tbuf = store.lockStore.Get(key, buf)\n\t\tif len(buf) == 0 {\n\t\t\tcontinue\n",
				new:  "\tvar buf []byte\n\tfor _, key := range keys {\n\t\tstore.flights.await(startTS, key, append(key[:len(key):len(key)], 0))\n\t\tbuf = store.lockStore.Get(key, buf)\n\t\tif len(buf) == 0 {\n\t\t\tcontinue\n",
			}, {
				file: storeMVCC,
				old:  "\tvar pairs []*kvrpcpb.KvPair\n\tit := store.lockStore.NewIterator()\n",
				new:  "\tstore.flights.await(startTS, startKey, endKey)\n\tvar pairs []*kvrpcpb.KvPair\n\tit := store.lockStore.NewIterator()\n",
			}, {
				// Clients take a store that does not tell of its health for gone after the first failure.
				file: "vendor/github.com/ngaut/unistore/cmd/unistore-server/main.go",
				old:  "\t\"google.golang.org/grpc/keepalive\"\n",
				new:  "\t\"google.golang.org/grpc/health\"\n\thealthpb \"google.golang.org/grpc/health/grpc_health_v1\"\n\t\"google.golang.org/grpc/keepalive\"\n",
			}, {
				// It speaks no TLS: TiKV does where it is given certificates.
				file: "vendor/github.com/pingcap/tidb/store/mockstore/unistore/pd/client.go",
				old:  "\t\"context\"\n\t\"net/url\"\n",
				new:  "\t\"context\"\n\t\"crypto/tls\"\n\t\"crypto/x509\"\n\t\"net/url\"\n\t\"os\"\n\t\"path/filepath\"\n",
			}, {
				file: "vendor/github.com/pingcap/tidb/store/mockstore/unistore/pd/client.go",
				old:  "\t\"google.golang.org/grpc\"\n)\n",
				new:  "\t\"google.golang.org/grpc\"\n\t\"google.golang.org/grpc/credentials\"\n)\n" + storeTLS,
			}, {
				file: "vendor/github.com/pingcap/tidb/store/mockstore/unistore/pd/client.go",
				old:  "grpc.Dial(u.Host, grpc.WithInsecure())",
				new:  "grpc.Dial(u.Host, Dialing())",
			}, {
				file: "vendor/github.com/ngaut/unistore/cmd/unistore-server/main.go",
				old:  "grpc.MaxRecvMsgSize(10*1024*1024)", // TiKV sets no limit
				new:  "grpc.MaxRecvMsgSize(1<<30),\n\t\tpd.Serving()",
			}, {
				// Its commit of a key writes the value once more, and a client commits many keys at once: TiKV's writes no value.
				file: "vendor/github.com/ngaut/unistore/raftstore/config.go",
				old:  "RaftEntryMaxSize:            8 * MB,",
				new:  "RaftEntryMaxSize:            256 * MB,",
			}, {
				// It hands out so many committed entries a tick, which is a second, and has all behind them wait: one MB a second.
				file: "vendor/github.com/ngaut/unistore/raftstore/config.go",
				old:  "RaftMaxSizePerMsg:           1 * MB,",
				new:  "RaftMaxSizePerMsg:           256 * MB,",
			}, {
				// Who begins to lead tells all whose requests were on their way so, and some are nobody's: it would end by them.
				file: "vendor/github.com/ngaut/unistore/raftstore/applier.go",
				old:  "\t\tcmd.cb.resp = ErrRespStaleCommand(term)\n",
				new:  "\t\tif cmd.cb == nil {\n\t\t\tcontinue\n\t\t}\n\t\tcmd.cb.resp = ErrRespStaleCommand(term)\n",
			}, {
				// What a replica does not take it has wait, and all other replicas as well: one whose machine is cut off stops the region. TiKV drops it.
				file: "vendor/github.com/ngaut/unistore/raftstore/raft_client.go",
				old:  "\tcase <-c.ctx.Done():\n\t\treturn c.ctx.Err()\n",
				new:  "\tcase <-c.ctx.Done():\n\t\treturn c.ctx.Err()\n\tdefault:\n\t\treturn nil\n",
			}, {
				// A replica that has been away for more than these is given a snapshot, and has not what was committed while it was made: when it
				// leads later, that is missing.
				file: "vendor/github.com/ngaut/unistore/raftstore/config.go",
				old:  "splitSize * 3 / 4 / KB,",
				new:  "1 << 40,",
			}, {
				file: "vendor/github.com/ngaut/unistore/raftstore/config.go",
				old:  "RaftLogGcSizeLimit:               splitSize * 3 / 4,",
				new:  "RaftLogGcSizeLimit:               1 << 40,",
			}, {
				// It would not start where the folder is there: a snapshot that was about to be applied when it ended is needed then.
				file: "vendor/github.com/ngaut/unistore/server/server.go",
				old:  "os.Mkdir(snapPath,",
				new:  "os.MkdirAll(snapPath,",
			}, {
				// It removes the files that it has to begin with when it is started again: one that is killed does not start any more.
				file: "vendor/github.com/ngaut/unistore/server/server.go",
				old:  "opts.ValueLogMaxNumFiles = 3",
				new:  "opts.ValueLogMaxNumFiles = 24",
			}, {
				// PD places nothing on a store that it has not heard of.
				file: "vendor/github.com/ngaut/unistore/raftstore/config.go",
				old:  "PdStoreHeartbeatTickInterval:     10 * time.Second,",
				new:  "PdStoreHeartbeatTickInterval:     1 * time.Second,",
			}, {
				file: "vendor/github.com/ngaut/unistore/cmd/unistore-server/main.go",
				old:  "\ttikvpb.RegisterTikvServer(grpcServer, tikvServer)\n",
				new:  "\ttikvpb.RegisterTikvServer(grpcServer, tikvServer)\n\thealthpb.RegisterHealthServer(grpcServer, health.NewServer())\n",
			}}},
	}
}

// secondaryLocks answers what a client asks about the locks of somebody's commit that is on its way (async commit).
const secondaryLocks = `	case *tikvpb.BatchCommandsRequest_Request_CheckSecondaryLocks:
		res, err := svr.KvCheckSecondaryLocks(ctx, req.CheckSecondaryLocks)
		if err != nil {
			return nil, err
		}
		return &tikvpb.BatchCommandsResponse_Response{Cmd: &tikvpb.BatchCommandsResponse_Response_CheckSecondaryLocks{CheckSecondaryLocks: res}}, nil
`

const storeMVCC = "vendor/github.com/pingcap/tidb/store/mockstore/unistore/tikv/mvcc.go"

// storeFlights are the prewrites that are on their way and whose commits may have an earlier timestamp than who reads meanwhile.
const storeFlights = `type flight struct {
	startTS uint64
	keys    [][]byte // in order
	done    chan struct{}
}

type flights struct {
	mu  sync.Mutex
	all map[*flight]struct{}
}

func (f *flights) begin(startTS uint64, mutations []*kvrpcpb.Mutation) (end func()) {
	one := &flight{startTS: startTS, done: make(chan struct{})}
	for _, m := range mutations {
		one.keys = append(one.keys, m.Key)
	}
	sort.Slice(one.keys, func(i, j int) bool { return bytes.Compare(one.keys[i], one.keys[j]) < 0 })
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.all == nil {
		f.all = map[*flight]struct{}{}
	}
	f.all[one] = struct{}{}
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.all, one)
		close(one.done)
	}
}

// await waits for those that a read at ts, from start on and before end, might miss.
func (f *flights) await(ts uint64, start, end []byte) {
	for one := f.meet(ts, start, end); one != nil; one = f.meet(ts, start, end) {
		<-one.done
	}
}

func (f *flights) meet(ts uint64, start, end []byte) *flight {
	f.mu.Lock()
	defer f.mu.Unlock()
	for one := range f.all {
		i := sort.Search(len(one.keys), func(i int) bool { return bytes.Compare(one.keys[i], start) >= 0 })
		if one.startTS <= ts && i < len(one.keys) && !exceedEndKey(one.keys[i], end) {
			return one
		}
	}
	return nil
}

`

// storeTLS is the store's TLS: certificates of which the environment names the folder, and which whoever connects has to have as well.
const storeTLS = `
func certificates() *tls.Config {
	dir := os.Getenv("` + certificatesVariable + `")
	if dir == "" {
		return nil
	}
	own, err := tls.LoadX509KeyPair(filepath.Join(dir, "` + certFile + `"), filepath.Join(dir, "` + keyFile + `"))
	if err != nil {
		panic(err)
	}
	authority, err := os.ReadFile(filepath.Join(dir, "` + caFile + `"))
	if err != nil {
		panic(err)
	}
	known := x509.NewCertPool()
	known.AppendCertsFromPEM(authority)
	return &tls.Config{Certificates: []tls.Certificate{own}, RootCAs: known, ClientCAs: known, ClientAuth: tls.RequireAndVerifyClientCert}
}

// Dialing is how others are called.
func Dialing() grpc.DialOption {
	if c := certificates(); c != nil {
		return grpc.WithTransportCredentials(credentials.NewTLS(c))
	}
	return grpc.WithInsecure()
}

// Serving is how others are answered.
func Serving() grpc.ServerOption {
	if c := certificates(); c != nil {
		return grpc.Creds(credentials.NewTLS(c))
	}
	return grpc.EmptyServerOption{}
}
`

// certificatesVariable names the folder of the store's certificates, in which these are.
const (
	certificatesVariable = "EBB_STORE_CERTIFICATES"
	caFile               = "ca.pem"
	certFile             = "cert.pem"
	keyFile              = "key.pem"
)

// build is the path of a program. It is built if it is not in the cache, from a copy of its module beside it.
func build(ctx context.Context, root string, p program, log io.Writer) (string, error) {
	module := filepath.Join(root, "tests", "tikv", p.name)
	digest, err := p.digest(module)
	if err != nil {
		return "", err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "ebb-tikv")
	path := filepath.Join(dir, p.name+"-"+digest)
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	fmt.Fprintf(log, "building %s, which takes some minutes\n", p.pkg)
	work, err := os.MkdirTemp("", "ebb-tikv-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(work)
	if err := p.compile(ctx, module, work, log); err != nil {
		return "", fmt.Errorf("build %s: %w", p.pkg, err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	return path, place(filepath.Join(work, "program"), path)
}

// sources are the files of a program's module.
func (p program) sources() []string { return append([]string{"go.mod", "go.sum"}, p.files...) }

// digest tells apart what is built from different sources or in another way.
func (p program) digest(module string) (string, error) {
	h := sha256.New()
	for _, name := range p.sources() {
		content, err := os.ReadFile(filepath.Join(module, name))
		if err != nil {
			return "", err
		}
		h.Write(content)
	}
	fmt.Fprint(h, runtime.Version(), runtime.GOOS, runtime.GOARCH, p)
	return hex.EncodeToString(h.Sum(nil)[:8]), nil
}

func (p program) compile(ctx context.Context, module, work string, log io.Writer) error {
	for _, name := range p.sources() {
		content, err := os.ReadFile(filepath.Join(module, name))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(work, name), content, 0o600); err != nil {
			return err
		}
	}
	mode := "-mod=readonly"
	if len(p.mends) > 0 {
		mode = "-mod=vendor"
		if err := goTool(ctx, work, log, "mod", "vendor"); err != nil {
			return err
		}
	}
	for _, m := range p.mends {
		path := filepath.Join(work, filepath.FromSlash(m.file))
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if bytes.Count(content, []byte(m.old)) != 1 {
			return fmt.Errorf("%s has not what is to be mended", m.file)
		}
		if err := os.WriteFile(path, bytes.Replace(content, []byte(m.old), []byte(m.new), 1), 0o600); err != nil {
			return err
		}
	}
	args := append([]string{"build", mode, "-trimpath", "-o", "program"}, p.flags...)
	return goTool(ctx, work, log, append(args, p.pkg)...)
}

func goTool(ctx context.Context, dir string, log io.Writer, args ...string) error {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, log, log
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=")
	return cmd.Run()
}

// place copies a program to where others find it, whole or not at all.
func place(from, to string) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	half, err := os.CreateTemp(filepath.Dir(to), "half-")
	if err != nil {
		return err
	}
	defer os.Remove(half.Name())
	if _, err = half.Write(content); err == nil {
		err = half.Chmod(0o700)
	}
	if closing := half.Close(); err == nil {
		err = closing
	}
	if err != nil {
		return err
	}
	return os.Rename(half.Name(), to)
}
