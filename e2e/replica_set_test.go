package e2e

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"

	"github.com/ebbdb/ebb/e2e/binary"
)

const (
	bySet    = "replicaSet=e2e"
	directly = "directConnection=true"
)

// TestReplicaSet: drivers find a replica set of one by its name and directly and run transactions in it, the shell's helpers begin one,
// and after kill -9 it is the same set, in a later term.
func TestReplicaSet(t *testing.T) {
	path, data := binary.Build(t), t.TempDir()
	args := []string{"--dbpath", data, "--replSet", "e2e", "--replSetInitiate", "--oplogSize", "990"}
	server := binary.Start(t, path, args...)
	t.Run("all", func(t *testing.T) { // ends when its parallel parts have
		for _, c := range []client{
			{name: "node/replica set", needs: node(), dir: "node", argv: []string{"node", "replica_set.mjs"}},
			python("replica set", "replica_set.py"),
			java(javaClients, "replica set", "ebb.ReplicaSet"),
		} {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				c.require(t)
				c.run(t, server.URI(bySet), "EBB_DIRECT_URI="+server.URI(directly))
			})
		}
		t.Run("mongosh/replica set", func(t *testing.T) {
			t.Parallel()
			c := client{needs: node(), dir: "node", argv: shell("replica_set.js")}
			c.require(t)
			alone := binary.Start(t, path, "--dbpath", t.TempDir(), "--replSet", "e2e", "--oplogSize", "990")
			c.run(t, alone.URI(directly))
		})
		for db, how := range map[string]string{"e2e_go_set": bySet, "e2e_go_direct": directly} {
			t.Run("go/"+how, func(t *testing.T) {
				t.Parallel()
				replicaSet(t, connect(t, server.URI(how)).Database(db))
			})
		}
	})
	if t.Failed() {
		t.FailNow() // each says what went wrong
	}

	before := memberOf(t, connect(t, server.URI(directly)))
	transferHalf(t, connect(t, server.URI(directly+"&serverSelectionTimeoutMS=100")).Database("e2e_go_set"))
	server.Kill()
	server = binary.Start(t, path, args...)
	client := connect(t, server.URI(directly))
	after := memberOf(t, client)
	if after.Conf.Settings.ReplicaSetID != before.Conf.Settings.ReplicaSetID || after.Conf.Version != 1 || after.Conf.Members[0].Host != before.Conf.Members[0].Host {
		t.Errorf("the configuration was %+v, and is %+v", before.Conf, after.Conf)
	}
	if after.Status.MyState != 1 || after.Status.Term != before.Status.Term+1 || !after.time().After(before.time()) {
		t.Errorf("the member was %+v, and is %+v", before.Status, after.Status)
	}
	for _, db := range []string{"e2e_go_set", "e2e_go_direct"} { // as they were, without what was under way
		equal(t, balances(t, client.Database(db)), []int32{59, 40})
	}
}

func connect(t *testing.T, uri string) *mongo.Client {
	t.Helper()
	client, err := mongo.Connect(options.Client().ApplyURI(uri))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // its server may be dead by then, and there is nobody to say goodbye to
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Second)
		defer cancel()
		_ = client.Disconnect(ctx)
	})
	return client
}

// member is what a member tells of itself.
type member struct {
	Status struct {
		MyState int
		Term    int64
		Optimes struct{ AppliedOpTime struct{ TS bson.Timestamp } }
	}
	Conf struct {
		Version  int
		Members  []struct{ Host string }
		Settings struct {
			ReplicaSetID bson.ObjectID `bson:"replicaSetId"`
		}
	}
}

func (m *member) time() bson.Timestamp { return m.Status.Optimes.AppliedOpTime.TS }

func memberOf(t *testing.T, client *mongo.Client) (m member) {
	t.Helper()
	var conf struct{ Config any }
	conf.Config = &m.Conf
	admin := client.Database("admin")
	equal(t, admin.RunCommand(t.Context(), bson.D{{Key: "replSetGetStatus", Value: 1}}).Decode(&m.Status), nil)
	equal(t, admin.RunCommand(t.Context(), bson.D{{Key: "replSetGetConfig", Value: 1}}).Decode(&conf), nil)
	return m
}

// balances are those of the one account that each of two collections has.
func balances(t *testing.T, db *mongo.Database) (all []int32) {
	t.Helper()
	for _, coll := range []string{"accounts", "savings"} {
		var got struct{ Balance int32 }
		equal(t, db.Collection(coll).FindOne(t.Context(), bson.M{"_id": 1}).Decode(&got), nil)
		all = append(all, got.Balance)
	}
	return all
}

// replicaSet runs transactions that move money between two collections.
func replicaSet(t *testing.T, db *mongo.Database) {
	ctx := t.Context()
	var hello struct {
		SetName, Me, Primary string
		Hosts                []string
	}
	equal(t, db.RunCommand(ctx, bson.D{{Key: "hello", Value: 1}}).Decode(&hello), nil)
	equal(t, []string{hello.SetName, hello.Primary, hello.Hosts[0]}, []string{"e2e", hello.Me, hello.Me})
	accounts, savings := db.Collection("accounts"), db.Collection("savings")
	must(t)(accounts.InsertOne(ctx, bson.M{"_id": 1, "balance": 100}))
	must(t)(savings.InsertOne(ctx, bson.M{"_id": 1, "balance": 0}))

	equal(t, transfer(ctx, db, 30), nil)
	equal(t, balances(t, db), []int32{70, 30})
	equal(t, errors.Is(transfer(ctx, db, 500), errNotEnough), true)
	equal(t, balances(t, db), []int32{70, 30})

	var group sync.WaitGroup
	failures := make([]error, 10)
	for i := range failures {
		group.Go(func() { failures[i] = transfer(ctx, db, 1) })
	}
	group.Wait()
	equal(t, errors.Join(failures...), nil)
	equal(t, balances(t, db), []int32{60, 40})

	// The second of two that change one document is told so, and that it may try again.
	sessions := [2]*mongo.Session{}
	for i := range sessions {
		var err error
		sessions[i], err = db.Client().StartSession()
		equal(t, err, nil)
		defer sessions[i].EndSession(context.WithoutCancel(ctx))
		equal(t, sessions[i].StartTransaction(), nil)
	}
	must(t)(accounts.UpdateByID(mongo.NewSessionContext(ctx, sessions[0]), 1, bson.M{"$inc": bson.M{"balance": -1}}))
	_, err := accounts.UpdateByID(mongo.NewSessionContext(ctx, sessions[1]), 1, bson.M{"$inc": bson.M{"balance": -2}})
	var refused mongo.ServerError
	if !errors.As(err, &refused) || !refused.HasErrorCode(112) || !refused.HasErrorLabel("TransientTransactionError") {
		t.Fatal(err)
	}
	equal(t, sessions[1].AbortTransaction(ctx), nil)
	equal(t, sessions[0].CommitTransaction(ctx), nil)
	equal(t, balances(t, db), []int32{59, 40})

	err = db.Client().UseSessionWithOptions(ctx, options.Session().SetCausalConsistency(true), func(ctx context.Context) error {
		if _, err := savings.InsertOne(ctx, bson.M{"_id": 2}); err != nil {
			return err
		}
		majority := db.Collection("savings", options.Collection().SetReadConcern(readconcern.Majority()))
		return majority.FindOne(ctx, bson.M{"_id": 2}).Err()
	})
	equal(t, err, nil)
}

// transferHalf leaves a transfer under way.
func transferHalf(t *testing.T, db *mongo.Database) {
	t.Helper()
	session, err := db.Client().StartSession()
	equal(t, err, nil)
	equal(t, session.StartTransaction(), nil)
	must(t)(db.Collection("accounts").UpdateByID(mongo.NewSessionContext(t.Context(), session), 1, bson.M{"$inc": bson.M{"balance": -5}}))
}

var errNotEnough = errors.New("not enough")

// transfer moves an amount from the one account to the other, if it is there.
func transfer(ctx context.Context, db *mongo.Database, amount int32) error {
	session, err := db.Client().StartSession()
	if err != nil {
		return err
	}
	defer session.EndSession(ctx)
	_, err = session.WithTransaction(ctx, func(ctx context.Context) (any, error) {
		if _, err := db.Collection("accounts").UpdateByID(ctx, 1, bson.M{"$inc": bson.M{"balance": -amount}}); err != nil {
			return nil, err
		}
		if _, err := db.Collection("savings").UpdateByID(ctx, 1, bson.M{"$inc": bson.M{"balance": amount}}); err != nil {
			return nil, err
		}
		var left struct{ Balance int32 }
		if err := db.Collection("accounts").FindOne(ctx, bson.M{"_id": 1}).Decode(&left); err != nil {
			return nil, err
		}
		if left.Balance < 0 {
			return nil, errNotEnough
		}
		return nil, nil
	})
	return err
}
