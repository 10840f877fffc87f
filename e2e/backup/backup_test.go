// Package backup backs the real server up under load, kills it and those who back it up with kill -9 at moments of chance, and compares what
// the backups bring back with what was acknowledged. It knows the command line and clients' promises only.
//
//	go test ./e2e/backup -v -args -rounds 50 -seed 7
package backup

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/ebbdb/ebb/e2e/binary"
)

var (
	rounds = flag.Int("rounds", 3, "how often the server is backed up and killed")
	seed   = flag.Uint64("seed", 0, "of the moments of death; 0 takes one and prints it")
)

const (
	writers = 4
	// callLimit is how long one call may take: a machine may have much else to do.
	callLimit = time.Minute
	// calmingBackups are how many backups without load may be taken until one finds all there.
	calmingBackups = 4
	mortal         = "mortal"
	lifetime       = time.Second
)

// trial is the server, its repository, and the books of the writers.
type trial struct {
	t                *testing.T
	path             string // of the program
	data, repository string
	random           *rand.Rand
	server           *binary.Server
	writers          []*writer
}

func newTrial(t *testing.T) *trial {
	if *seed == 0 {
		*seed = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d, %d rounds", *seed, *rounds)
	dir := t.TempDir()
	x := &trial{t: t, path: binary.Build(t), data: filepath.Join(dir, "data"), repository: filepath.Join(dir, "repository"), random: rand.New(rand.NewPCG(*seed, 0))}
	for i := range writers {
		x.writers = append(x.writers, &writer{number: i})
	}
	return x
}

// database connects without the driver's retries: a write is acknowledged or it is not.
func database(t *testing.T, server *binary.Server) *mongo.Database {
	t.Helper()
	client, err := mongo.Connect(options.Client().ApplyURI(server.URI("directConnection=true")).
		SetRetryWrites(false).SetRetryReads(false).SetServerSelectionTimeout(5 * time.Second).SetTimeout(callLimit))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 50*time.Millisecond)
		defer cancel()
		_ = client.Disconnect(ctx)
	})
	return client.Database("backed")
}

// TestBackupsUnderKill: whoever is killed and when, a backup that was acknowledged brings back what was acknowledged before it began, all
// of what each writer wrote up to some moment and nothing behind it, and what had not expired at its moment.
func TestBackupsUnderKill(t *testing.T) {
	x := newTrial(t)
	x.start()
	x.index()
	taken, shipped := 0, []string(nil)
	for round := range *rounds {
		killed, b := x.round()
		if b != nil {
			taken++
			shipped = append(shipped, fmt.Sprintf("%s of %s", b.shipped, b.size))
			x.bringBack(b)
		}
		t.Logf("round %d: %s, backup %v, %d acknowledged", round+1, killed, b, x.acknowledged())
		if t.Failed() {
			t.Fatalf("again with: go test ./e2e/backup -v -args -rounds %d -seed %d\nthe server's log ends with:\n%s", *rounds, *seed, x.server.Log())
		}
	}
	// What expires after the load is still written, and tables are merged: then more is new than was written.
	before, last := x.quiet(), x.quiet()
	all, fresh := x.added(before, last)
	for range calmingBackups {
		if fresh <= all/2 {
			break
		}
		before, last = last, x.quiet()
		all, fresh = x.added(before, last)
	}
	t.Logf("%d of %d backups were taken; shipped %v; without load %s of %s", taken, *rounds, shipped, last.shipped, last.size)
	if fresh > all/2 {
		t.Errorf("of the %d bytes of a backup before which nothing was written %d were not there before", all, fresh)
	}
	x.bringBack(last)
	x.ebb("backup", "prune", x.repository, "--keep", "2", "--breakLocks")
	x.bringBack(last)
	if out, err := x.try(t.Context(), "verify", x.repository); err != nil {
		t.Errorf("verify: %v: %s", err, out)
	}
	x.server.Kill()
}

func (x *trial) start() {
	x.server = binary.Start(x.t, x.path, "--dbpath", x.data)
	if left, err := os.ReadDir(filepath.Join(x.data, "store", "checkpoints")); err == nil && len(left) > 0 {
		x.t.Errorf("a start has left %d checkpoints", len(left))
	}
}

func (x *trial) index() {
	_, err := database(x.t, x.server).Collection(mortal).Indexes().CreateOne(x.t.Context(), mongo.IndexModel{
		Keys: bson.D{{Key: "at", Value: 1}}, Options: options.Index().SetExpireAfterSeconds(int32(lifetime / time.Second))})
	if err != nil {
		x.t.Fatal(err)
	}
}

func (x *trial) acknowledged() (n int) {
	for _, w := range x.writers {
		n += w.acknowledged
	}
	return n
}

// taken is a backup, and what was known as it was taken.
type taken struct {
	id, shipped, size   string
	files, shippedFiles int
	at                  time.Time
	// low and high are between what each writer had acknowledged when it began, and had sent when it had ended.
	low, high []int
	// mortals are what was acknowledged before it began of what expires.
	mortals map[string]time.Time
}

func (b *taken) String() string {
	if b == nil {
		return "none"
	}
	return b.id
}

// round lets the writers write, begins a backup, and kills the server, the one who backs up, or nobody; then the server is started anew.
func (x *trial) round() (killed string, b *taken) {
	ctx, stop := context.WithCancel(x.t.Context())
	db := database(x.t, x.server)
	var all sync.WaitGroup
	for _, w := range x.writers {
		all.Go(func() { w.run(ctx, db) })
	}
	time.Sleep(time.Duration(50+x.random.IntN(400)) * time.Millisecond)
	backing, kill := context.WithCancel(x.t.Context())
	done := make(chan *taken, 1)
	go func() { done <- x.backUp(backing) }()
	death := time.Duration(x.random.IntN(700)) * time.Millisecond
	switch x.random.IntN(3) {
	case 0:
		killed = fmt.Sprintf("the server killed after %v", death)
		time.Sleep(death)
		x.server.Kill()
		b = <-done
	case 1:
		killed = fmt.Sprintf("the backup killed after %v", death)
		time.Sleep(death)
		kill()
		b = <-done
		x.server.Kill()
	default:
		killed = "the server killed after the backup"
		if b = <-done; b == nil {
			x.t.Error("a backup that nobody disturbed has failed")
		}
		x.server.Kill()
	}
	kill()
	stop()
	all.Wait()
	for _, w := range x.writers {
		if w.refused != nil {
			x.t.Errorf("writer %d: the server refused a write: %v", w.number, w.refused)
		}
	}
	x.start()
	return killed, b
}

// quiet backs up while nobody writes.
func (x *trial) quiet() *taken {
	b := x.backUp(x.t.Context())
	if b == nil {
		x.t.Fatal("a backup without load has failed")
	}
	return b
}

var report = regexp.MustCompile(`backup (\S+) of the data as of \S+: (\d+) files, (.+), of which (\d+) files, (.+), were shipped`)

// backUp is nil where the backup did not end well.
func (x *trial) backUp(ctx context.Context) *taken {
	b := &taken{mortals: map[string]time.Time{}}
	for _, w := range x.writers {
		low, mortals := w.books()
		b.low = append(b.low, low)
		for id, at := range mortals {
			b.mortals[id] = at
		}
	}
	out, err := x.try(ctx, "backup", "--uri", x.server.URI("directConnection=true"), x.repository)
	if err != nil {
		return nil
	}
	for _, w := range x.writers {
		b.high = append(b.high, w.hasSent())
	}
	found := report.FindStringSubmatch(out)
	if found == nil {
		x.t.Errorf("the backup says %q", out)
		return nil
	}
	b.id, b.size, b.shipped = found[1], found[3], found[5]
	fmt.Sscan(found[2], &b.files)
	fmt.Sscan(found[4], &b.shippedFiles)
	b.at = x.manifest(b).At
	return b
}

// added is how many bytes a backup has, and how many of them another does not have.
func (x *trial) added(before, last *taken) (all, fresh int64) {
	there := map[string]bool{}
	for _, f := range x.manifest(before).Files {
		there[f.SHA256] = true
	}
	for _, f := range x.manifest(last).Files {
		all += f.Bytes
		if !there[f.SHA256] {
			fresh += f.Bytes
		}
	}
	return all, fresh
}

// manifest is what the tests read of a manifest.
type manifest struct {
	At    time.Time
	Files []struct {
		Bytes  int64
		SHA256 string
	}
}

func (x *trial) manifest(b *taken) (m manifest) {
	f, err := os.Open(filepath.Join(x.repository, "backups", b.id+".json"))
	if err != nil {
		x.t.Fatal(err)
	}
	defer f.Close()
	if err := json.NewDecoder(f).Decode(&m); err != nil {
		x.t.Fatal(err)
	}
	return m
}

func (x *trial) try(ctx context.Context, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, x.path, args...).CombinedOutput()
	return string(out), err
}

func (x *trial) ebb(args ...string) {
	x.t.Helper()
	if out, err := x.try(x.t.Context(), args...); err != nil {
		x.t.Fatalf("ebb %s: %v: %s", strings.Join(args, " "), err, out)
	}
}

// bringBack restores a backup, and looks at what a server on it has.
func (x *trial) bringBack(b *taken) {
	x.t.Helper()
	dir := filepath.Join(x.t.TempDir(), "back")
	x.ebb("restore", x.repository, "--backup", b.id, "--dbpath", dir)
	x.ebb("check", "--dbpath", dir)
	server := binary.Start(x.t, x.path, "--dbpath", dir)
	defer server.Kill()
	db := database(x.t, server)
	for i, w := range x.writers {
		w.compare(x.t, db, b.low[i], b.high[i])
	}
	x.compareMortals(db, b)
	var valid struct{ Valid bool }
	for _, coll := range []string{mortal, x.writers[0].collection()} {
		if err := db.RunCommand(x.t.Context(), bson.D{{Key: "validate", Value: coll}}).Decode(&valid); err != nil || !valid.Valid {
			x.t.Errorf("validate %s: %+v, %v", coll, valid, err)
		}
	}
}

// compareMortals: of what was acknowledged, nothing has gone whose time was not over at the moment of the backup, however late it is restored.
func (x *trial) compareMortals(db *mongo.Database, b *taken) {
	x.t.Helper()
	there := map[string]bool{}
	cursor, err := db.Collection(mortal).Find(x.t.Context(), bson.D{})
	if err != nil {
		x.t.Fatal(err)
	}
	var docs []struct {
		ID string `bson:"_id"`
	}
	if err := cursor.All(x.t.Context(), &docs); err != nil {
		x.t.Fatal(err)
	}
	for _, d := range docs {
		there[d.ID] = true
	}
	alive := 0
	for id, at := range b.mortals {
		if !at.Add(lifetime).After(b.at) {
			continue
		}
		alive++
		if !there[id] {
			x.t.Errorf("%s of %v is missing in the backup as of %v", id, at, b.at)
		}
	}
	x.t.Logf("%s: %d documents that had not expired are there", b.id, alive)
}

// isRefusal says whether an error is the word of a server that does not end.
func isRefusal(err error) bool {
	var said mongo.ServerError
	var command mongo.CommandError
	if !errors.As(err, &said) || said.HasErrorLabel("NetworkError") || said.HasErrorCode(91) || said.HasErrorCode(11600) {
		return false
	}
	if errors.As(err, &command) {
		return command.Code != 0
	}
	return true
}
