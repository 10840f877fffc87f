package cluster

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	startLimit  = 60 * time.Second // until all stores are there
	startTries  = 4
	splitLimit  = 90 * time.Second // until all regions are replicated
	killLimit   = 10 * time.Second
	pollPause   = 200 * time.Millisecond
	askTime     = 2 * time.Second
	maxStores   = 9
	logsKept    = 2 << 10
	maxPDs      = 5
	regionsPath = "/pd/api/v1/regions"
)

// storeTimes has stores elect leaders and tell PD of regions in a few seconds instead of a minute.
const storeTimes = `[raftstore]
raft-base-tick-interval = "200ms"
raft-heartbeat-ticks = 2
raft-election-timeout-ticks = 10
raft-store-max-leader-lease = "1800ms"
pd-heartbeat-tick-interval = "1s"
`

// The environment may name programs to run in place of those that are built here: TiKV's own server, and a PD.
const (
	tikvVariable = "EBB_TIKV_SERVER"
	pdVariable   = "EBB_PD_SERVER"
)

// tikvSmall is for a TiKV on a machine that has other work: what it sets aside and opens by default is for one of its own. Its regions are a hundredth
// of those in production, so that what tests write lies in many, and these split beside what is done.
const tikvSmall = `pd-store-heartbeat-tick-interval = "1s"
split-region-check-tick-interval = "1s"
region-split-check-diff = "512KB"
[coprocessor]
region-split-size = "2MB"
region-max-size = "3MB"
region-split-keys = 20000
region-max-keys = 30000
[storage]
reserve-space = "0MB"
[storage.block-cache]
capacity = "256MB"
[rocksdb]
max-open-files = 256
[raftdb]
max-open-files = 256
`

// Cluster is a running cluster. All that it writes lies in one folder, which Stop removes.
type Cluster struct {
	dir      string
	pds      []*process
	stores   []*process
	programs map[string]string
	tikv     bool // the stores are TiKV's own, not the test double
	options  Options
	client   *http.Client // of PD's interface
}

// Options of a cluster.
type Options struct {
	// Stores is how many there are. With three or more each region has three replicas.
	Stores int
	// PDs is how many placement drivers there are, an odd number; 1 by default. One of them leads, and another one does when that is gone.
	PDs int
	// Place, unless nil, is where a server of the cluster runs, by its name: pd1, pd2, store1, store2. All are on this machine otherwise, at the loopback interface.
	Place func(name string) Place
	// Certificates is a folder with ca.pem, cert.pem and key.pem, by which all speak TLS and know one another; "" for no TLS.
	Certificates string
	// Log is told of what takes long.
	Log io.Writer
}

// Place is where a server runs.
type Place struct {
	Address string   // which others reach it by
	Prefix  []string // what a command begins with that runs there
}

// process is one server of the cluster. It keeps its ports when it is started again.
type process struct {
	name  string
	place Place
	args  []string
	env   []string
	path  string
	dir   string
	addr  string
	peer  string // where PDs talk to one another
	cmd   *exec.Cmd
	gone  chan struct{}
}

// Start builds what is not built yet, and starts PD and the stores. root is the folder of Ebb's sources.
func Start(ctx context.Context, root string, o Options) (*Cluster, error) {
	stores := o.Stores
	if stores < 1 || stores > maxStores {
		return nil, fmt.Errorf("a cluster has 1 to %d stores, not %d", maxStores, stores)
	}
	if o.PDs == 0 {
		o.PDs = 1
	}
	if o.PDs < 1 || o.PDs > maxPDs || o.PDs%2 == 0 {
		return nil, fmt.Errorf("a cluster has 1, 3 or %d placement drivers, not %d", maxPDs, o.PDs)
	}
	if o.Place == nil {
		o.Place = func(string) Place { return Place{Address: "127.0.0.1"} }
	}
	c := &Cluster{programs: map[string]string{}, options: o, client: &http.Client{Timeout: askTime}}
	if o.Certificates != "" {
		config, err := readTLS(o.Certificates)
		if err != nil {
			return nil, err
		}
		c.client.Transport = &http.Transport{TLSClientConfig: config}
	}
	given := map[string]string{"pd": os.Getenv(pdVariable), "store": os.Getenv(tikvVariable)}
	c.tikv = given["store"] != ""
	for name, p := range programs() {
		if given[name] != "" {
			path, err := filepath.Abs(given[name])
			if err != nil {
				return nil, err
			}
			c.programs[name] = path
			continue
		}
		path, err := build(ctx, root, p, o.Log)
		if err != nil {
			return nil, err
		}
		c.programs[name] = path
	}
	for try := 1; ; try++ {
		err := c.startAnew(ctx, stores)
		switch {
		case err == nil:
			return c, nil
		case !errors.Is(err, errEnded) || try == startTries:
			return nil, err
		}
		fmt.Fprintln(o.Log, "once more:", strings.SplitN(err.Error(), "\n", 2)[0])
	}
}

func (c *Cluster) startAnew(ctx context.Context, stores int) (err error) {
	c.pds, c.stores = nil, nil
	if c.dir, err = os.MkdirTemp("", "ebb-tikv-"); err != nil {
		return err
	}
	if err := c.start(ctx, stores, min(stores, 3)); err != nil {
		return errors.Join(err, c.Stop())
	}
	return nil
}

// errEnded says that a server has ended by itself. A replica of unistore's does so now and then when its first entries come (the third or fifth start of three
// stores), and was not seen to later.
var errEnded = errors.New("a server of the cluster has ended")

func readTLS(dir string) (*tls.Config, error) {
	own, err := tls.LoadX509KeyPair(filepath.Join(dir, certFile), filepath.Join(dir, keyFile))
	if err != nil {
		return nil, err
	}
	authority, err := os.ReadFile(filepath.Join(dir, caFile))
	if err != nil {
		return nil, err
	}
	known := x509.NewCertPool()
	known.AppendCertsFromPEM(authority)
	return &tls.Config{Certificates: []tls.Certificate{own}, RootCAs: known}, nil
}

// scheme is what PD is asked by.
func (c *Cluster) scheme() string {
	if c.options.Certificates != "" {
		return "https://"
	}
	return "http://"
}

func (c *Cluster) start(ctx context.Context, stores, replicas int) error {
	if err := c.startPD(ctx, replicas); err != nil {
		return err
	}
	for n := range stores {
		if err := c.startStore(n); err != nil {
			return err
		}
		if err := c.awaitStores(ctx, n+1); err != nil { // one after the other: the first makes the cluster
			return err
		}
		if n > 0 || c.tikv {
			continue
		}
		if err := c.await(ctx, startLimit, "PD to split no regions", c.splitNothing); err != nil {
			return err
		}
	}
	return c.awaitReplicas(ctx, replicas)
}

// PD are the addresses of the placement drivers, with commas between.
func (c *Cluster) PD() string { return strings.Join(c.pdAddresses(), ",") }

func (c *Cluster) pdAddresses() (all []string) {
	for _, p := range c.pds {
		all = append(all, p.addr)
	}
	return all
}

// PDs and Stores are the names of the servers.
func (c *Cluster) PDs() []string { return names(c.pds) }

// Stores are the names of the stores.
func (c *Cluster) Stores() []string { return names(c.stores) }

func names(all []*process) (out []string) {
	for _, p := range all {
		out = append(out, p.name)
	}
	return out
}

func (c *Cluster) all() []*process { return slices.Concat(c.stores, c.pds) }

// server is the one of a name, of those that PDs and Stores return.
func (c *Cluster) server(name string) *process {
	for _, p := range c.all() {
		if p.name == name {
			return p
		}
	}
	panic("cluster: there is no server " + name)
}

// PDLeader is the name of the placement driver that leads.
func (c *Cluster) PDLeader() (string, error) {
	var leader struct {
		Name string `json:"name"`
	}
	if err := c.ask("/pd/api/v1/leader", &leader); err != nil {
		return "", err
	}
	return leader.Name, nil
}

// MoveLead has the placement driver that leads hand over to the one of that name.
func (c *Cluster) MoveLead(name string) error {
	return c.send(http.MethodPost, "/pd/api/v1/leader/transfer/"+name)
}

// StoreOf is the name of the store that leads the region of a key.
func (c *Cluster) StoreOf(key string) (string, error) {
	var regions struct {
		Regions []struct {
			Leader struct {
				StoreID uint64 `json:"store_id"`
			} `json:"leader"`
		} `json:"regions"`
	}
	if err := c.ask(regionsPath+"/key?limit=1&key="+url.QueryEscape(key), &regions); err != nil {
		return "", err
	}
	if len(regions.Regions) != 1 {
		return "", fmt.Errorf("PD tells of %d regions", len(regions.Regions))
	}
	var stores struct {
		Stores []struct {
			Store struct {
				ID      uint64 `json:"id"`
				Address string `json:"address"`
			} `json:"store"`
		} `json:"stores"`
	}
	if err := c.ask("/pd/api/v1/stores", &stores); err != nil {
		return "", err
	}
	for _, s := range stores.Stores {
		for _, p := range c.stores {
			if s.Store.ID == regions.Regions[0].Leader.StoreID && s.Store.Address == p.addr {
				return p.name, nil
			}
		}
	}
	return "", errors.New("no store is known that leads the region")
}

// Kill ends a server as a crash does; Restart starts it again on its data.
func (c *Cluster) Kill(name string) { c.server(name).kill() }

// Restart starts a server again, where it was.
func (c *Cluster) Restart(name string) error { return c.server(name).start() }

// Freeze has a server stand still; Thaw has it go on.
func (c *Cluster) Freeze(name string) error {
	return c.server(name).cmd.Process.Signal(syscall.SIGSTOP)
}

// Thaw is the inverse of Freeze.
func (c *Cluster) Thaw(name string) error { return c.server(name).cmd.Process.Signal(syscall.SIGCONT) }

// Ended says how a server has ended that nobody has killed since it was started, and the end of its log; "" where it runs.
func (c *Cluster) Ended(name string) string {
	p := c.server(name)
	select {
	case <-p.gone:
		return fmt.Sprintf("%v\n%s", p.cmd.ProcessState, p.log())
	default:
		return ""
	}
}

// Stop ends all servers and removes what they have written.
func (c *Cluster) Stop() error {
	for _, p := range c.all() {
		p.kill()
	}
	return os.RemoveAll(c.dir)
}

// startPD starts all placement drivers, which find one another by the list of all.
func (c *Cluster) startPD(ctx context.Context, replicas int) error {
	var all []string
	for n := range c.options.PDs {
		p := &process{name: fmt.Sprintf("pd%d", n+1), path: c.programs["pd"]}
		if err := c.settle(p, &p.addr, &p.peer); err != nil {
			return err
		}
		p.env = []string{"GODEBUG=httpmuxgo121=1"} // its paths have spaces at their ends
		c.pds = append(c.pds, p)
		all = append(all, p.name+"="+c.scheme()+p.peer)
	}
	config := fmt.Sprintf("[replication]\nmax-replicas = %d\n[log]\nlevel = \"warn\"\n[schedule]\nmax-merge-region-size = 0\n", replicas) + c.security("cacert-path")
	for _, p := range c.pds {
		if err := p.prepare("config.toml", config); err != nil {
			return err
		}
		p.args = []string{"--name=" + p.name, "--data-dir=" + filepath.Join(p.dir, "data"), "--client-urls=" + c.scheme() + p.addr, "--peer-urls=" + c.scheme() + p.peer,
			"--initial-cluster=" + strings.Join(all, ","), "--config=" + filepath.Join(p.dir, "config.toml")}
		if err := p.start(); err != nil {
			return err
		}
	}
	return c.await(ctx, startLimit, "PD to answer", func() (bool, error) {
		var health []struct {
			Health bool `json:"health"`
		}
		err := c.ask("/pd/api/v1/health", &health)
		well := 0
		for _, h := range health {
			if h.Health {
				well++
			}
		}
		return err == nil && well == c.options.PDs, c.allRun()
	})
}

// settle gives a server its place, its folder, and ports there.
func (c *Cluster) settle(p *process, addrs ...*string) error {
	p.place, p.dir = c.options.Place(p.name), filepath.Join(c.dir, p.name)
	ports, err := freePorts(len(addrs))
	if err != nil {
		return err
	}
	for i, addr := range addrs {
		*addr = p.place.Address + ":" + ports[i]
	}
	return nil
}

func (c *Cluster) startStore(n int) error {
	p, status := &process{name: fmt.Sprintf("store%d", n+1), path: c.programs["store"]}, ""
	if err := c.settle(p, &p.addr, &status); err != nil {
		return err
	}
	config := "[server]\nlog-level = \"warn\"\n[engine]\nsync-write = true\n" + storeTimes + "custom-raft-log = true\n"
	pds := c.scheme() + strings.Join(c.pdAddresses(), ","+c.scheme())
	data := filepath.Join(p.dir, "data")
	p.args = []string{"-config", filepath.Join(p.dir, "config.toml"), "-pd", pds, "-addr", p.addr, "-status-addr", status, "-data-dir", data}
	p.env = []string{certificatesVariable + "=" + c.options.Certificates}
	if c.tikv {
		config = "[log]\nlevel = \"warn\"\n" + storeTimes + tikvSmall + c.security("ca-path")
		p.args = []string{"--config", filepath.Join(p.dir, "config.toml"), "--pd-endpoints", c.PD(), "--addr", p.addr, "--status-addr", status, "--data-dir", data}
	}
	if err := p.prepare("config.toml", config); err != nil {
		return err
	}
	c.stores = append(c.stores, p)
	return p.start()
}

// security is the part of a configuration about certificates. PD and TiKV call the authority's by different names.
func (c *Cluster) security(authority string) string {
	dir := c.options.Certificates
	if dir == "" {
		return ""
	}
	return fmt.Sprintf("[security]\n%s = %q\ncert-path = %q\nkey-path = %q\n", authority, filepath.Join(dir, caFile), filepath.Join(dir, certFile), filepath.Join(dir, keyFile))
}

func (c *Cluster) awaitStores(ctx context.Context, n int) error {
	return c.await(ctx, startLimit, fmt.Sprintf("%d stores", n), func() (bool, error) {
		var stores struct {
			Count int `json:"count"`
		}
		err := c.ask("/pd/api/v1/stores", &stores)
		return err == nil && stores.Count >= n, c.allRun()
	})
}

// keyspaceRule is PD's rule that regions end where the keyspaces of its own kind do.
const keyspaceRule = "/pd/api/v1/config/region-label/rule/keyspaces%2F0"

// splitNothing has PD forget that rule: unistore does not understand its request to split there, and PD, which asks on and on, does nothing else with
// those regions: they are never replicated.
func (c *Cluster) splitNothing() (bool, error) {
	if err := c.remove(keyspaceRule); err != nil {
		return false, c.allRun()
	}
	var regions struct {
		Regions []struct {
			ID uint64 `json:"id"`
		} `json:"regions"`
	}
	if err := c.ask(regionsPath, &regions); err != nil {
		return false, c.allRun()
	}
	for _, r := range regions.Regions {
		_ = c.remove(fmt.Sprint("/pd/api/v1/operators/", r.ID)) // most have none
	}
	return true, nil
}

// remove has PD remove something.
func (c *Cluster) remove(path string) error { return c.send(http.MethodDelete, path) }

func (c *Cluster) send(method, path string) error {
	return c.anyPD(func(base string) error {
		request, err := http.NewRequest(method, base+path, nil)
		if err != nil {
			return err
		}
		reply, err := c.client.Do(request)
		if err != nil {
			return err
		}
		defer reply.Body.Close()
		return accepted(reply)
	})
}

// anyPD asks one placement driver after the other: each hands on to the one that leads.
func (c *Cluster) anyPD(try func(base string) error) (err error) {
	for _, p := range c.pds {
		if err = try(c.scheme() + p.addr); err == nil {
			return nil
		}
	}
	return err
}

func accepted(reply *http.Response) error {
	if reply.StatusCode != http.StatusOK {
		return fmt.Errorf("PD answers %s", reply.Status)
	}
	return nil
}

// awaitReplicas waits until each region has all its replicas and a leader: a store that gets a region and splits it at once may fail.
func (c *Cluster) awaitReplicas(ctx context.Context, replicas int) error {
	return c.await(ctx, splitLimit, fmt.Sprintf("%d replicas of each region", replicas), func() (bool, error) {
		var regions struct {
			Regions []struct {
				Peers   []json.RawMessage `json:"peers"`
				Pending []json.RawMessage `json:"pending_peers"`
				Leader  struct {
					StoreID uint64 `json:"store_id"`
				} `json:"leader"`
			} `json:"regions"`
		}
		if err := c.ask(regionsPath, &regions); err != nil || len(regions.Regions) == 0 {
			return false, c.allRun()
		}
		for _, r := range regions.Regions {
			if len(r.Peers) != replicas || len(r.Pending) > 0 || r.Leader.StoreID == 0 {
				return false, c.allRun()
			}
		}
		return true, nil
	})
}

// allRun is an error when one of the servers has ended.
func (c *Cluster) allRun() error {
	for _, p := range c.all() {
		select {
		case <-p.gone:
			return fmt.Errorf("%w: %s, %v\n%s", errEnded, p.name, p.cmd.ProcessState, p.log())
		default:
		}
	}
	return nil
}

func (c *Cluster) await(ctx context.Context, most time.Duration, what string, there func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	for {
		ok, err := there()
		if ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w", what, ctx.Err())
		case <-time.After(pollPause):
		}
	}
}

func (c *Cluster) ask(path string, into any) error {
	return c.anyPD(func(base string) error {
		reply, err := c.client.Get(base + path)
		if err != nil {
			return err
		}
		defer reply.Body.Close()
		if err := accepted(reply); err != nil {
			return err
		}
		return json.NewDecoder(reply.Body).Decode(into)
	})
}

func (p *process) prepare(name, content string) error {
	if err := os.MkdirAll(filepath.Join(p.dir, "data"), 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(p.dir, name), []byte(content), 0o600)
}

func (p *process) start() error {
	out, err := os.OpenFile(filepath.Join(p.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer out.Close()
	command := slices.Concat(p.place.Prefix, []string{p.path}, p.args)
	p.cmd = exec.Command(command[0], command[1:]...)
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = p.dir, out, out
	p.cmd.Env = append(os.Environ(), p.env...)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // an interrupt at the terminal is for who has started the cluster
	if err := p.cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", p.name, err)
	}
	cmd, gone := p.cmd, make(chan struct{})
	p.gone = gone
	go func() {
		defer close(gone)
		_ = cmd.Wait() // how it ended is read from ProcessState
	}()
	return nil
}

func (p *process) kill() {
	if p.cmd == nil || p.cmd.Process == nil {
		return
	}
	_ = p.cmd.Process.Kill()
	select {
	case <-p.gone:
	case <-time.After(killLimit):
	}
}

// log is the end of what the process has written.
func (p *process) log() string {
	content, err := os.ReadFile(filepath.Join(p.dir, "log"))
	if err != nil {
		return err.Error()
	}
	return strings.ToValidUTF8(string(content[max(0, len(content)-logsKept):]), "?")
}

// freePorts are ports of the loopback interface that nobody uses.
func freePorts(n int) (ports []string, err error) {
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close() // all at the end, so that none is given twice
		ports = append(ports, strconv.Itoa(l.Addr().(*net.TCPAddr).Port))
	}
	return ports, nil
}
