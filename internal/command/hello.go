package command

import (
	"math"
	"time"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// What hello announces.
const (
	maxMessageBytes   = 48_000_000
	maxWriteBatchSize = 100_000
	sessionMinutes    = 30
	minWireVersion    = 0
	maxWireVersion    = 27 // MongoDB 8.2
)

// maxMetadataBytes is how large a client's description of itself may be.
const maxMetadataBytes = 512

func helloCommands() []*Command {
	return []*Command{
		{Name: "hello", Doc: "Says what kind of server this is and what it can take.", NoSession: true, Quiet: true, Run: hello},
		{Name: "isMaster", Aliases: []string{"ismaster"}, Doc: "The old name of hello.", NoSession: true, Quiet: true, Run: hello},
	}
}

func hello(op *Op) (bson.Doc, error) {
	a := op.Args
	legacy := op.Command.Name == "isMaster"
	a.Ignore(op.Name(), "loadBalanced", "hostInfo", "forShell", "speculativeAuthenticate", "internalClient")
	helloOK := a.Bool("helloOk", false)
	client := a.Doc("client")
	mechs, _ := a.String("saslSupportedMechs")
	compressors := a.Array("compression")
	version := a.Doc("topologyVersion")
	await, awaited := a.IntIn("maxAwaitTimeMS", 0, math.MaxInt32)
	if err := a.Done(); err != nil {
		return nil, err
	}
	if client != nil {
		if err := op.Conn.meet(client); err != nil {
			return nil, err
		}
	}
	if (version != nil) != awaited {
		return nil, mongoerr.New(31368, "A request with 'topologyVersion' must also have 'maxAwaitTimeMS', and the other way round")
	}
	if version != nil {
		if err := op.awaitTopology(version, time.Duration(await)*time.Millisecond); err != nil {
			return nil, err
		}
	}
	b := bson.Build()
	if helloOK {
		b.Bool("helloOk", true)
	}
	if legacy {
		b.Bool("ismaster", true)
	} else {
		b.Bool("isWritablePrimary", true)
	}
	b.Object("topologyVersion").ObjectID("processId", op.processID).Int64("counter", 0).End().
		Int32("maxBsonObjectSize", bson.MaxDocSize).Int32("maxMessageSizeBytes", maxMessageBytes).
		Int32("maxWriteBatchSize", maxWriteBatchSize).Date("localTime", clock.Millis(op.Clock)).
		Int32("logicalSessionTimeoutMinutes", sessionMinutes).Int32("connectionId", int32(op.Conn.ID)).
		Int32("minWireVersion", minWireVersion).Int32("maxWireVersion", maxWireVersion).Bool("readOnly", false)
	if mechs != "" {
		b.Strings("saslSupportedMechs", nil)
	}
	op.settleCompression(b, compressors)
	return b.Doc(), nil
}

// meet takes note of what the client says of itself, once a connection.
func (c *Conn) meet(client bson.Doc) error {
	if c.metadata != nil {
		return mongoerr.New(mongoerr.ClientMetadataCannotBeMutated, "The client metadata document may only be sent in the first hello")
	}
	if len(client) > maxMetadataBytes {
		return mongoerr.New(mongoerr.ClientMetadataDocumentTooLarge, "The client metadata document must be less then or equal to %d bytes", maxMetadataBytes)
	}
	app := ""
	if v := client.Lookup("application"); v.Type == bson.TypeObject {
		if name := v.Doc().Lookup("name"); name.Type == bson.TypeString {
			app = string([]byte(name.Str()))
		}
	}
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

// awaitTopology waits until the topology is another one than the client knows: a standalone's never changes, so that is
// at once or when the client's patience ends.
func (op *Op) awaitTopology(known bson.Doc, patience time.Duration) error {
	a := NewArgs("hello.topologyVersion", known)
	id := a.Value("processId")
	_, ok := a.Int("counter")
	if err := a.Done(); err != nil {
		return err
	}
	if id.Type != bson.TypeObjectID || !ok {
		return mongoerr.New(mongoerr.TypeMismatch, "BSON field 'hello.topologyVersion' needs a processId and a counter")
	}
	if op.ExhaustAllowed {
		op.MoreToCome = true
	}
	if id.ObjectID() != op.processID {
		return nil
	}
	return clock.Wait(op.Ctx, op.Clock, patience)
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
