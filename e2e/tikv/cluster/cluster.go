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
	"os"
	"os/exec"
	"path/filepath"
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
	pdName      = "pd"
	regionsPath = "/pd/api/v1/regions"
)

// storeTimes has stores elect leaders and tell PD of regions in a few seconds instead of a minute.
const storeTimes = `[raftstore]
raft-base-tick-interval = "200ms"
raft-heartbeat-ticks = 2
raft-election-timeout-ticks = 10
raft-store-max-leader-lease = "1800ms"
pd-heartbeat-tick-interval = "1s"
custom-raft-log = true
`

// Cluster is a running cluster. All that it writes lies in one folder, which Stop removes.
type Cluster struct {
	dir      string
	pd       *process
	stores   []*process
	programs map[string]string
	options  Options
	client   *http.Client // of PD's interface
}

// Options of a cluster.
type Options struct {
	// Stores is how many there are. With three or more each region has three replicas.
	Stores int
	// Certificates is a folder with ca.pem, cert.pem and key.pem, by which all speak TLS and know one another; "" for no TLS.
	Certificates string
	// Log is told of what takes long.
	Log io.Writer
}

// process is one server of the cluster. It keeps its ports when it is started again.
type process struct {
	name string
	args []string
	env  []string
	path string
	dir  string
	addr string
	cmd  *exec.Cmd
	gone chan struct{}
}

// Start builds what is not built yet, and starts PD and the stores. root is the folder of Ebb's sources.
func Start(ctx context.Context, root string, o Options) (*Cluster, error) {
	stores := o.Stores
	if stores < 1 || stores > maxStores {
		return nil, fmt.Errorf("a cluster has 1 to %d stores, not %d", maxStores, stores)
	}
	c := &Cluster{programs: map[string]string{}, options: o, client: &http.Client{Timeout: askTime}}
	if o.Certificates != "" {
		config, err := readTLS(o.Certificates)
		if err != nil {
			return nil, err
		}
		c.client.Transport = &http.Transport{TLSClientConfig: config}
	}
	for name, p := range programs() {
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
	c.stores = nil
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
		if n > 0 {
			continue
		}
		if err := c.await(ctx, startLimit, "PD to split no regions", c.splitNothing); err != nil {
			return err
		}
	}
	return c.awaitReplicas(ctx, replicas)
}

// PD is the address of the placement driver.
func (c *Cluster) PD() string { return c.pd.addr }

// Stores is how many stores there are.
func (c *Cluster) Stores() int { return len(c.stores) }

// KillPD and KillStore end a server as a crash does; RestartPD and RestartStore start it again on its data.
func (c *Cluster) KillPD() { c.pd.kill() }

// RestartPD starts PD again.
func (c *Cluster) RestartPD() error { return c.pd.start() }

// KillStore ends a store.
func (c *Cluster) KillStore(n int) { c.stores[n].kill() }

// RestartStore starts a store again.
func (c *Cluster) RestartStore(n int) error {
	// It makes this folder anew, and would not start where it is there.
	if err := os.RemoveAll(filepath.Join(c.stores[n].dir, "data", "snap")); err != nil {
		return err
	}
	return c.stores[n].start()
}

// Stop ends all servers and removes what they have written.
func (c *Cluster) Stop() error {
	for _, p := range append(c.stores, c.pd) {
		if p != nil {
			p.kill()
		}
	}
	return os.RemoveAll(c.dir)
}

func (c *Cluster) startPD(ctx context.Context, replicas int) error {
	ports, err := freePorts(2)
	if err != nil {
		return err
	}
	client, peer := "127.0.0.1:"+ports[0], "127.0.0.1:"+ports[1]
	c.pd = &process{name: pdName, path: c.programs["pd"], addr: client, dir: filepath.Join(c.dir, pdName)}
	c.pd.env = []string{"GODEBUG=httpmuxgo121=1"} // its paths have spaces at their ends
	config := fmt.Sprintf("[replication]\nmax-replicas = %d\n[log]\nlevel = \"warn\"\n[schedule]\nmax-merge-region-size = 0\n", replicas)
	if dir := c.options.Certificates; dir != "" {
		config += fmt.Sprintf("[security]\ncacert-path = %q\ncert-path = %q\nkey-path = %q\n", filepath.Join(dir, caFile), filepath.Join(dir, certFile), filepath.Join(dir, keyFile))
	}
	if err := c.pd.prepare("config.toml", config); err != nil {
		return err
	}
	c.pd.args = []string{"--name=pd", "--data-dir=" + filepath.Join(c.pd.dir, "data"), "--client-urls=" + c.scheme() + client, "--peer-urls=" + c.scheme() + peer,
		"--config=" + filepath.Join(c.pd.dir, "config.toml")}
	if err := c.pd.start(); err != nil {
		return err
	}
	return c.await(ctx, startLimit, "PD to answer", func() (bool, error) {
		var health []struct {
			Health bool `json:"health"`
		}
		err := c.ask("/pd/api/v1/health", &health)
		return err == nil && len(health) > 0 && health[0].Health, nil
	})
}

func (c *Cluster) startStore(n int) error {
	ports, err := freePorts(2)
	if err != nil {
		return err
	}
	name := fmt.Sprintf("store%d", n+1)
	p := &process{name: name, path: c.programs["store"], addr: "127.0.0.1:" + ports[0], dir: filepath.Join(c.dir, name)}
	config := "[server]\nlog-level = \"warn\"\n[engine]\nsync-write = true\n" + storeTimes
	if err := p.prepare("config.toml", config); err != nil {
		return err
	}
	p.args = []string{"-config", filepath.Join(p.dir, "config.toml"), "-pd", c.scheme() + c.pd.addr, "-addr", p.addr, "-status-addr", "127.0.0.1:" + ports[1],
		"-data-dir", filepath.Join(p.dir, "data")}
	p.env = []string{certificatesVariable + "=" + c.options.Certificates}
	c.stores = append(c.stores, p)
	return p.start()
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
func (c *Cluster) remove(path string) error {
	request, err := http.NewRequest(http.MethodDelete, c.scheme()+c.pd.addr+path, nil)
	if err != nil {
		return err
	}
	reply, err := c.client.Do(request)
	if err != nil {
		return err
	}
	defer reply.Body.Close()
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
	for _, p := range append(c.stores, c.pd) {
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
	reply, err := c.client.Get(c.scheme() + c.pd.addr + path)
	if err != nil {
		return err
	}
	defer reply.Body.Close()
	if reply.StatusCode != http.StatusOK {
		return fmt.Errorf("PD answers %s", reply.Status)
	}
	return json.NewDecoder(reply.Body).Decode(into)
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
	p.cmd = exec.Command(p.path, p.args...)
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
