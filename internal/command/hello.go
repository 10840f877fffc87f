package command

import (
	"math"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ebbdb/ebb/internal/audit"
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/replset"
)

// What hello announces.
const (
	maxMessageBytes   = 48_000_000
	maxWriteBatchSize = 100_000
	minWireVersion    = 0
	maxWireVersion    = 27 // MongoDB 8.2
)

// maxMetadataBytes is how large a client's description of itself may be.
const maxMetadataBytes = 512

func helloCommands() []*Command {
	return []*Command{
		{Name: "hello", Doc: "Says what kind of server this is and what it can take.", NoAuth: true, Sensitive: []string{"speculativeAuthenticate"}, Quiet: true, Run: hello},
		{Name: "isMaster", Aliases: []string{"ismaster"}, Doc: "The old name of hello.", NoAuth: true, Sensitive: []string{"speculativeAuthenticate"}, Quiet: true, Run: hello},
	}
}

func hello(op *Op) (bson.Doc, error) {
	a := op.Args
	legacy := op.Command.Name == "isMaster"
	helloOK := a.SafeBool("helloOk", false)
	client := a.Doc("client")
	mechs := a.Value("saslSupportedMechs")
	compressors := a.Array("compression")
	version := a.Doc("topologyVersion")
	await, awaited := a.Int("maxAwaitTimeMS")
	speculative := a.Doc("speculativeAuthenticate")
	if err := a.Err(); err != nil { // fields that nobody knows are passed over
		return nil, err
	}
	if _, err := userAsked(mechs); err != nil {
		return nil, err
	}
	if client != nil {
		if err := op.Conn.meet(client); err != nil {
			return nil, err
		}
		if op.Audit != nil {
			op.tellResult("clientMetadata", bson.Build().Document("localEndpoint", audit.Endpoint(op.Conn.Local)).Document("clientMetadata", op.Conn.metadata).Doc(), 0, false)
		}
		if !op.flag("quiet") {
			desc := op.Conn.Client().Desc
			op.NetworkLog.Info("client metadata", "remote", op.Conn.Remote, "client", desc, "doc", client.JSON(), "ctx", desc)
		}
	}
	if err := op.awaitTopology(version, await, awaited); err != nil {
		return nil, err
	}
	b := bson.Build()
	if helloOK {
		b.Bool("helloOk", true)
	}
	writable := "isWritablePrimary"
	if legacy {
		writable = "ismaster"
	}
	told := op.topologyVersion()
	switch {
	case op.Router:
		b.Bool(writable, true).String("msg", "isdbgrid").Document("topologyVersion", told)
	case op.Replica != nil:
		v := op.Replica.View()
		told = op.topologyOf(v)
		op.appendMember(b, writable, v, told)
	default:
		b.Bool(writable, true).Document("topologyVersion", told)
	}
	if op.MoreToCome {
		op.Next = op.nextHello(told)
	}
	b.Int32("maxBsonObjectSize", bson.MaxDocSize).Int32("maxMessageSizeBytes", maxMessageBytes).
		Int32("maxWriteBatchSize", maxWriteBatchSize).Date("localTime", clock.Millis(op.Clock)).
		Int32("logicalSessionTimeoutMinutes", op.sessionMinutes()).Int32("connectionId", int32(op.Conn.ID)).
		Int32("minWireVersion", minWireVersion).Int32("maxWireVersion", maxWireVersion).Bool("readOnly", false)
	if err := op.appendSupportedMechs(b, mechs); err != nil {
		return nil, err
	}
	op.speculate(speculative, b)
	op.settleCompression(b, compressors)
	return b.Doc(), nil
}

func (s *Server) topologyVersion() bson.Doc {
	if s.Replica == nil {
		return bson.Build().ObjectID("processId", s.processID).Int64("counter", 0).Doc()
	}
	return s.topologyOf(s.Replica.View())
}

func (s *Server) topologyOf(v *replset.View) bson.Doc {
	return bson.Build().ObjectID("processId", s.topology.ID).Int64("counter", v.Topology).Doc()
}

// meet takes note of what the client says of itself, once a connection.
func (c *Conn) meet(client bson.Doc) error {
	if c.metadata != nil {
		return mongoerr.New(mongoerr.ClientMetadataCannotBeMutated, "The client metadata document may only be sent in the first hello")
	}
	if len(client) > maxMetadataBytes {
		return mongoerr.New(mongoerr.ClientMetadataDocumentTooLarge, "The client metadata document must be less then or equal to %d bytes", maxMetadataBytes)
	}
	app := applicationName(client)
	if len(app) > 128 {
		return mongoerr.New(mongoerr.ClientMetadataAppNameTooLarge, "The 'client.application.name' field must be less then or equal to 128 bytes")
	}
	for _, name := range [2]string{"driver", "os"} {
		if client.Lookup(name).Type != bson.TypeObject {
			return mongoerr.New(mongoerr.ClientMetadataMissingField, "Missing required sub-document '%s' in the client metadata document", name)
		}
	}
	c.SetMetadata(client, app)
	return nil
}

// applicationName is the name that the client's application has given itself.
func applicationName(client bson.Doc) string {
	if v := client.Lookup("application"); v.Type == bson.TypeObject {
		if name := v.Doc().Lookup("name"); name.Type == bson.TypeString {
			return strings.Clone(name.Str())
		}
	}
	return ""
}

// awaitedHellos counts those that wait for the topology to change: all, and those of them that are answered again and again.
type awaitedHellos struct{ all, exhaustHello, exhaustIsMaster atomic.Int64 }

// begin counts op until what it returns is called.
func (h *awaitedHellos) begin(op *Op) (end func()) {
	counted := []*atomic.Int64{&h.all}
	switch {
	case !op.ExhaustAllowed:
	case op.Command.Name == "hello":
		counted = append(counted, &h.exhaustHello)
	default:
		counted = append(counted, &h.exhaustIsMaster)
	}
	for _, n := range counted {
		n.Add(1)
	}
	return func() {
		for _, n := range counted {
			n.Add(-1)
		}
	}
}

// awaitTopology waits until the topology is another one than the client knows, which a standalone's never is: that is
// at once, when the client's patience ends, or when the server stops.
func (op *Op) awaitTopology(known bson.Doc, millis int64, awaited bool) error {
	switch {
	case known == nil && !awaited:
		return nil
	case known == nil:
		return mongoerr.New(31368, "A request with 'maxAwaitTimeMS' must include a 'topologyVersion'")
	case !awaited:
		return mongoerr.New(31368, "A request with a 'topologyVersion' must include 'maxAwaitTimeMS'")
	case millis < 0:
		return mongoerr.New(31373, "maxAwaitTimeMS must be a non-negative integer")
	}
	process, counter, err := readTopologyVersion(known)
	switch {
	case err != nil:
		return err
	case counter < 0:
		return mongoerr.New(31372, "topologyVersion must have a non-negative counter")
	}
	op.MoreToCome = op.ExhaustAllowed
	own, now, changed := op.processID, int64(0), (<-chan struct{})(nil)
	if op.Replica != nil {
		v := op.Replica.View()
		own, now, changed = op.topology.ID, v.Topology, v.Changed
	}
	if process != own {
		return nil // another server's: the client has to learn of this one
	}
	switch {
	case counter > now:
		return mongoerr.New(31382, "Received a topology version with counter: %d which is greater than the server topology version counter: %d", counter, now)
	case counter < now:
		return nil
	}
	defer op.hellos.begin(op)()
	return op.rest(time.Duration(min(millis, math.MaxInt32))*time.Millisecond, changed)
}

// appendMember appends what a member of a replica set says of itself and of the set, by the addresses that members have where the client is.
func (op *Op) appendMember(b *bson.Builder, writable string, v *replset.View, topology bson.Doc) {
	b.Document("topologyVersion", topology)
	if v.Config == nil || v.State == replset.Removed {
		b.Bool(writable, false).Bool("secondary", false).String("info", "Does not have a valid replica set config").Bool("isreplicaset", true)
		return
	}
	self := &v.Config.Members[v.Self]
	horizon := self.HorizonOf(op.Conn.askedFor())
	var hosts, passives []string
	for i := range v.Config.Members {
		m := &v.Config.Members[i]
		switch {
		case m.Hidden:
		case m.Priority > 0:
			hosts = append(hosts, m.HostIn(horizon))
		default:
			passives = append(passives, m.HostIn(horizon))
		}
	}
	primary := v.State == replset.Primary
	b.Strings("hosts", hosts)
	if len(passives) > 0 {
		b.Strings("passives", passives)
	}
	b.String("setName", v.Config.ID).Int32("setVersion", int32(v.Config.Version)).Bool(writable, primary).Bool("secondary", v.State == replset.Secondary)
	if v.Primary != "" {
		b.String("primary", v.Config.HostIn(horizon, v.Primary))
	}
	if self.Priority == 0 {
		b.Bool("passive", true)
	}
	if self.Hidden {
		b.Bool("hidden", true)
	}
	if !self.Tags.IsEmpty() {
		b.Document("tags", self.Tags)
	}
	b.String("me", self.HostIn(horizon))
	if primary {
		b.ObjectID("electionId", replset.ElectionID(v.Term))
	}
	last := op.Query.Store.LastLogged()
	b.Object("lastWrite")
	for _, name := range [...]struct{ op, date string }{{"opTime", "lastWriteDate"}, {"majorityOpTime", "majorityWriteDate"}} {
		appendEntryTime(b, name.op, last, v.Term)
		b.Date(name.date, int64(last.Seconds())*1000)
	}
	b.End()
}

func readTopologyVersion(d bson.Doc) (process [12]byte, counter int64, err error) {
	a := NewArgs("hello.topologyVersion", d)
	a.Required("processId", "counter")
	id, ok := a.typed("processId", bson.TypeObjectID)
	if ok {
		process = id.ObjectID()
	}
	n, ok := a.typed("counter", bson.TypeInt64)
	if ok {
		counter = n.Int64()
	}
	return process, counter, a.Done()
}

// nextHello is the request again with the topology version that the client knows from the reply.
func (op *Op) nextHello(told bson.Doc) bson.Doc {
	b := bson.Build()
	for it := op.Args.Document().Iter(); it.Next(); {
		if it.Key() == "topologyVersion" {
			b.Document("topologyVersion", told)
		} else {
			b.Value(it.Key(), it.Value())
		}
	}
	return b.Doc()
}

// testPatience is how long hello waits at most in a server whose clock is turned by hand: a driver that disconnects in the
// wrong moment waits for the answer to its last hello, and tests start and stop many.
const testPatience = 250 * time.Millisecond

// rest waits for d, until changed is closed, until the Server gives way to another, or until the operation or the server ends. Clients and sockets
// live in real time, whatever clock the
// database has.
func (op *Op) rest(d time.Duration, changed <-chan struct{}) error {
	if op.Clock != clock.Wall() && !op.RealTime {
		d = min(d, testPatience)
	}
	t := clock.Wall().NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C():
		return nil
	case <-changed:
		return nil
	case <-op.ending: // whoever asks again is answered by the next Server. An error would have a driver take this one for gone
		return nil
	case <-op.Stopping:
		return mongoerr.New(mongoerr.InterruptedAtShutdown, "interrupted at shutdown")
	case <-op.Ctx.Done():
		return op.Ctx.Err()
	}
}

func (op *Op) settleCompression(b *bson.Builder, asked bson.Doc) {
	if op.Conn.Compress == nil {
		return
	}
	if asked == nil {
		if names := op.Conn.Compression(); len(names) > 0 {
			b.Strings("compression", names)
		}
		return
	}
	var names []string
	for it := asked.Iter(); it.Next(); {
		if it.Value().Type == bson.TypeString {
			names = append(names, string([]byte(it.Value().Str())))
		}
	}
	if names = op.Conn.Compress(names); len(names) > 0 {
		b.Strings("compression", names)
	}
}
