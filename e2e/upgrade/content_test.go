package upgrade

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/ebbdb/ebb/e2e/launch"
)

const documents = 200

// contents are commands that fill a database. What an earlier build does not know is left out.
func contents(t *testing.T) []bson.D {
	now := time.Now().Truncate(time.Second)
	var plain, times, few []string
	for i := range documents {
		plain = append(plain, fmt.Sprintf(`{"_id": %d, "n": %d, "u": "K%dı", "tags": [%d, {"x": %d}], "w": {"k%d": %d}, "t": "%s", "language": "%s", "g": {"type": "Point", "coordinates": [%d, %d]}, "s": "%s"}`,
			i, i%17, i, i%3, i%5, i%4, i, []string{"running dogs", "schnelle Autos fahren", "kutyák házakban", "kirjoja taloissa"}[i%4], []string{"english", "german", "hungarian", "finnish"}[i%4],
			i%20, i%15, []string{"Apfel", "äpfel", "ıI", "Zebra10", "zebra9"}[i%5]))
		times = append(times, fmt.Sprintf(`{"_id": %d, "d": [%s, %s], "ttl": %s, "k": %d}`, i, date(now.Add(time.Duration(i-100)*time.Hour)), date(now.Add(9000*time.Hour)), []string{"-1", "900000", "900000.5", `"x"`}[i%4], i%7))
	}
	for i := range 9 {
		few = append(few, fmt.Sprintf(`{"at": %s, "of": %d, "_id": %d}`, date(now.Add(-time.Duration(i/3)*time.Hour)), i%3, i/2))
	}
	insert := func(coll string, docs []string) string {
		return `{"insert": "` + coll + `", "documents": [` + strings.Join(docs, ", ") + `]}`
	}
	index := func(coll string, spec string) string {
		return `{"createIndexes": "` + coll + `", "indexes": [` + spec + `]}`
	}
	var commands []bson.D
	for _, text := range []string{
		index("plain", `{"key": {"u": 1}, "name": "unique", "unique": true, "collation": {"locale": "tr", "strength": 2}}`),
		index("plain", `{"key": {"s": 1}, "name": "ordered", "collation": {"locale": "de", "strength": 1}}`),
		index("plain", `{"key": {"tags.x": 1, "n": -1}, "name": "multikey"}`),
		index("plain", `{"key": {"n": 1}, "name": "partial", "partialFilterExpression": {"n": {"$gt": 5}}}`),
		index("plain", `{"key": {"w.$**": 1}, "name": "wild"}`),
		index("plain", `{"key": {"s": "hashed"}, "name": "hashed"}`),
		index("plain", `{"key": {"g": "2dsphere"}, "name": "sphere"}`),
		index("plain", `{"key": {"t": "text"}, "name": "text"}`),
		insert("plain", plain),
		`{"update": "plain", "updates": [{"q": {"n": 3}, "u": {"$set": {"tags": []}}, "multi": true}]}`,
		`{"delete": "plain", "deletes": [{"q": {"n": 4}, "limit": 0}]}`,
		index("dates", `{"key": {"d": 1}, "name": "ttl", "expireAfterSeconds": 60, "hideExpired": true}`),
		index("dates", `{"key": {"k": 1}, "name": "k"}`),
		insert("dates", times),
		index("modified", `{"key": {"_ts": 1}, "name": "ttl", "expireAfterSeconds": 500000}`),
		index("modified", `{"key": {"k": 1}, "name": "k"}`),
		insert("modified", times),
		`{"update": "modified", "updates": [{"q": {"k": 2}, "u": {"$set": {"z": 1}}, "multi": true}]}`,
		insert("late", times),
		index("late", `{"key": {"k": 1}, "name": "k"}`),
		index("late", `{"key": {"d": 1}, "name": "ttl", "expireAfterSeconds": 60}`),
		`{"create": "clustered", "clusteredIndex": {"key": {"_id": 1}, "unique": true}, "collation": {"locale": "sv", "strength": 2}}`,
		insert("clustered", []string{`{"_id": "å"}`, `{"_id": "z"}`, `{"_id": 5}`, `{"_id": {"$oid": "0123456789abcdef01234567"}}`}),
		`{"create": "capped", "capped": true, "size": 10000, "max": 50}`,
		insert("capped", plain),
		`{"create": "series", "timeseries": {"timeField": "at", "metaField": "of"}, "expireAfterSeconds": 9000000}`,
		insert("series", few),
		`{"create": "view", "viewOn": "plain", "pipeline": [{"$match": {"n": 5}}]}`,
		`{"create": "valid", "validator": {"$jsonSchema": {"required": ["x"]}}}`,
		insert("valid", []string{`{"_id": 1, "x": 1}`}),
	} {
		commands = append(commands, document(t, text))
	}
	return commands
}

func date(at time.Time) string { return `{"$date": "` + at.UTC().Format(time.RFC3339) + `"}` }

func document(t *testing.T, text string) (d bson.D) {
	t.Helper()
	if err := bson.UnmarshalExtJSON([]byte(text), false, &d); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return d
}

var collections = []string{"plain", "dates", "modified", "late", "clustered", "capped", "series", "view", "valid"}

// lookUps are conditions and the index of plain that answers them, under the collation that it has.
var lookUps = []struct {
	index     string
	collation *options.Collation
	condition string
}{
	{"unique", &options.Collation{Locale: "tr", Strength: 2}, `{"u": "k7ı"}`},
	{"ordered", &options.Collation{Locale: "de", Strength: 1}, `{"s": "APFEL"}`},
	{"multikey", nil, `{"tags.x": 2}`},
	{"partial", nil, `{"n": 7}`},
	{"wild", nil, `{"w.k1": {"$gt": 50}}`},
	{"hashed", nil, `{"s": "ıI"}`},
	{"sphere", nil, `{"g": {"$geoWithin": {"$centerSphere": [[5, 5], 0.05]}}}`},
}

func database(t *testing.T, s *launch.Server) *mongo.Database {
	t.Helper()
	client, err := mongo.Connect(options.Client().ApplyURI(s.URI("directConnection=true")))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Disconnect(t.Context()) })
	for primary := false; !primary; { // a member becomes that at its start
		var hello struct {
			Primary bool `bson:"isWritablePrimary"`
		}
		if err := client.Database("admin").RunCommand(t.Context(), document(t, `{"hello": 1}`)).Decode(&hello); err != nil {
			t.Fatal(err)
		}
		primary = hello.Primary
	}
	return client.Database("upgraded")
}

func fill(t *testing.T, s *launch.Server) {
	t.Helper()
	db := database(t, s)
	for _, command := range contents(t) {
		if err := db.RunCommand(t.Context(), command).Err(); err != nil {
			t.Logf("left out: %v", err)
		}
	}
}

// read is what collections and indexes have, each under a name.
func read(t *testing.T, s *launch.Server) map[string][]string {
	t.Helper()
	db, all := database(t, s), map[string][]string{}
	for _, name := range collections {
		docs := find(t, db.Collection(name), bson.D{}, options.Find())
		all[name] = docs
		for _, doc := range docs {
			if name != "series" && name != "view" {
				all[name+" deadlines"] = append(all[name+" deadlines"], deadline(t, db, name, doc))
			}
		}
		indexes, err := db.Collection(name).Indexes().ListSpecifications(t.Context())
		if err == nil {
			for _, d := range indexes {
				all[name+" indexes"] = append(all[name+" indexes"], d.Name+" "+d.KeysDocument.String())
			}
		}
	}
	for _, l := range lookUps {
		o, condition := options.Find().SetCollation(l.collation), document(t, l.condition)
		scanned := find(t, db.Collection("plain"), condition, o.SetHint(document(t, `{"$natural": 1}`)))
		if found := find(t, db.Collection("plain"), condition, o.SetHint(l.index)); !slices.Equal(found, scanned) || len(found) == 0 {
			t.Errorf("the index %s has %d documents, a scan %d", l.index, len(found), len(scanned))
		}
	}
	return all
}

// find returns documents in the order of their text.
func find(t *testing.T, c *mongo.Collection, condition bson.D, o *options.FindOptionsBuilder) (docs []string) {
	t.Helper()
	cursor, err := c.Find(t.Context(), condition, o)
	if err != nil {
		t.Errorf("find %s in %s: %v", condition, c.Name(), err)
		return nil
	}
	for cursor.Next(t.Context()) {
		docs = append(docs, cursor.Current.String())
	}
	if err := cursor.Err(); err != nil {
		t.Error(err)
	}
	slices.Sort(docs)
	return docs
}

func deadline(t *testing.T, db *mongo.Database, coll, doc string) string {
	t.Helper()
	var id struct {
		ID bson.RawValue `bson:"_id"`
	}
	if err := bson.UnmarshalExtJSON([]byte(doc), false, &id); err != nil {
		t.Fatal(err)
	}
	raw, err := db.RunCommand(t.Context(), bson.D{{Key: "ebbTTL", Value: coll}, {Key: "explain", Value: id.ID}}).Raw()
	if err != nil {
		t.Fatal(err)
	}
	return id.ID.String() + " " + raw.Lookup("deadline").String()
}

func compare(t *testing.T, before, after map[string][]string) {
	t.Helper()
	for name, was := range before {
		if is := after[name]; !slices.Equal(was, is) {
			t.Errorf("%s: %d became %d: first\n%s\nthen\n%s", name, len(was), len(is), was, is)
		}
	}
}

func validate(t *testing.T, s *launch.Server) {
	t.Helper()
	db := database(t, s)
	for _, name := range collections {
		var result struct {
			Valid    bool
			Errors   bson.A
			Warnings bson.A
		}
		err := db.RunCommand(t.Context(), bson.D{{Key: "validate", Value: name}, {Key: "full", Value: true}}).Decode(&result)
		var refused mongo.CommandError
		if errors.As(err, &refused) && (refused.Name == "CommandNotSupportedOnView" || refused.Name == "NamespaceNotFound") {
			continue // a view, or what the earlier build could not make
		}
		if err != nil || !result.Valid || len(result.Errors)+len(result.Warnings) > 0 {
			t.Errorf("%s is not valid: %v %+v", name, err, result)
		}
	}
}

// change writes to what is there.
func change(t *testing.T, s *launch.Server) {
	t.Helper()
	db := database(t, s)
	for _, name := range []string{"plain", "dates", "modified", "late"} {
		result, err := db.Collection(name).UpdateMany(t.Context(), bson.D{}, document(t, `{"$inc": {"n": 1}, "$set": {"later": 1}}`))
		if err != nil || result.ModifiedCount == 0 {
			t.Errorf("update %s: %+v, %v", name, result, err)
		}
	}
	if err := db.Collection("plain").FindOne(t.Context(), document(t, `{"u": "K8ı"}`)).Err(); err != nil {
		t.Error(err)
	}
	_, err := db.Collection("plain").InsertOne(t.Context(), document(t, `{"_id": -1, "u": "k8ı"}`))
	if !mongo.IsDuplicateKeyError(err) {
		t.Errorf("another language's upper case is taken: %v", err)
	}
}
