package ebb;

import static ebb.Checks.RECLAIM_MILLIS;
import static ebb.Checks.eventually;
import static ebb.Checks.holds;
import static ebb.Checks.refused;
import static ebb.Checks.same;
import static ebb.Checks.sleepUntil;

import com.mongodb.ErrorCategory;
import com.mongodb.ExplainVerbosity;
import com.mongodb.MongoBulkWriteException;
import com.mongodb.MongoWriteException;
import com.mongodb.bulk.BulkWriteResult;
import com.mongodb.client.ClientSession;
import com.mongodb.client.MongoClient;
import com.mongodb.client.MongoClients;
import com.mongodb.client.MongoCollection;
import com.mongodb.client.MongoCursor;
import com.mongodb.client.MongoDatabase;
import com.mongodb.client.gridfs.GridFSBuckets;
import com.mongodb.client.model.Accumulators;
import com.mongodb.client.model.Aggregates;
import com.mongodb.client.model.BulkWriteOptions;
import com.mongodb.client.model.DeleteOneModel;
import com.mongodb.client.model.Filters;
import com.mongodb.client.model.FindOneAndUpdateOptions;
import com.mongodb.client.model.IndexOptions;
import com.mongodb.client.model.Indexes;
import com.mongodb.client.model.InsertOneModel;
import com.mongodb.client.model.Projections;
import com.mongodb.client.model.ReturnDocument;
import com.mongodb.client.model.Sorts;
import com.mongodb.client.model.UpdateOneModel;
import com.mongodb.client.model.UpdateOptions;
import com.mongodb.client.model.Updates;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Date;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.bson.Document;
import org.bson.types.Decimal128;
import org.bson.types.ObjectId;

/** The Java driver: ordinary life, and both kinds of TTL. */
public final class Client {
    private static final String TOO_SLOW = "this machine is too slow to say";

    private final Checks checks = new Checks();
    private final MongoClient client;
    private final MongoDatabase mongoDB;

    private Client(MongoClient client) {
        this.client = client;
        this.mongoDB = client.getDatabase("e2e_java");
    }

    public static void main(String[] args) throws InterruptedException {
        String uri = System.getenv().getOrDefault("EBB_URI", "mongodb://127.0.0.1:27017/?directConnection=true");
        try (MongoClient client = MongoClients.create(uri)) {
            new Client(client).run();
        }
    }

    private void run() throws InterruptedException {
        mongoDB.drop();
        List<Thread> slow = List.of(
                new Thread(() -> checks.check("TTL on _ts with ttl in documents", this::ttlOfDocuments)),
                new Thread(() -> checks.check("TTL on a date", this::ttlOfDates)));
        slow.forEach(Thread::start);
        checks.check("write and read", this::writeAndRead);
        checks.check("aggregate", this::aggregate);
        checks.check("cursors over several batches", this::cursors);
        checks.check("a session", this::session);
        checks.check("bulkWrite", this::bulkWrite);
        checks.check("indexes, and the plan that uses one", this::indexes);
        checks.check("findOneAnd…", this::findAndModify);
        checks.check("errors and statistics", this::errorsAndStatistics);
        checks.check("GridFS", this::gridFS);
        for (Thread thread : slow) {
            thread.join();
        }
        checks.done();
    }

    private void writeAndRead() {
        MongoCollection<Document> people = mongoDB.getCollection("people");
        holds(people.insertOne(new Document("name", "Ada").append("price", Decimal128.parse("1.10"))).getInsertedId().isObjectId(), "an ObjectId");
        people.insertMany(List.of(new Document("name", "Grace").append("n", 1L), new Document("name", "Edsger").append("n", 2L)));
        List<String> names = new ArrayList<>();
        people.find(Filters.gte("n", 1)).sort(Sorts.descending("n")).projection(Projections.include("name")).forEach(d -> names.add(d.getString("name")));
        same(names, List.of("Edsger", "Grace"));
        same(people.find(Filters.eq("name", "Ada")).first().get("price"), Decimal128.parse("1.10"));
        same(people.updateMany(Filters.exists("n"), Updates.combine(Updates.inc("n", 10L), Updates.addToSet("tags", "x"))).getModifiedCount(), 2L);
        same(people.updateOne(Filters.eq(7), Updates.set("n", 0), new UpdateOptions().upsert(true)).getUpsertedId().asInt32().getValue(), 7);
        same(people.replaceOne(Filters.eq(7), new Document("name", "x")).getModifiedCount(), 1L);
        same(people.deleteOne(Filters.eq(7)).getDeletedCount(), 1L);
        same(people.countDocuments(), 3L);
        same(people.estimatedDocumentCount(), 3L);
    }

    private void aggregate() {
        MongoCollection<Document> sales = mongoDB.getCollection("sales");
        sales.insertMany(List.of(new Document("item", "a").append("qty", 2), new Document("item", "b").append("qty", 1), new Document("item", "a").append("qty", 5)));
        List<Document> rows = sales.aggregate(List.of(
                Aggregates.group("$item", Accumulators.sum("qty", "$qty"), Accumulators.max("most", "$qty")),
                Aggregates.sort(Sorts.ascending("_id")))).into(new ArrayList<>());
        same(rows, List.of(
                new Document("_id", "a").append("qty", 7).append("most", 5),
                new Document("_id", "b").append("qty", 1).append("most", 1)));
    }

    private void cursors() throws Exception {
        MongoCollection<Document> many = mongoDB.getCollection("many");
        many.insertMany(IntStream.range(0, 2500).mapToObj(i -> new Document("_id", i)).toList());
        int next = 0;
        try (MongoCursor<Document> cursor = many.find().batchSize(99).iterator()) {
            while (cursor.hasNext()) {
                same(cursor.next().getInteger("_id"), next++);
            }
        }
        same(next, 2500);
        try (MongoCursor<Document> cursor = many.find().batchSize(2).iterator()) {
            cursor.next();
            mongoDB.runCommand(new Document("killCursors", "many").append("cursors", List.of(cursor.getServerCursor().getId())));
            cursor.next();
            refused(43, cursor::next);
        }
    }

    private void session() {
        try (ClientSession session = client.startSession()) {
            MongoCollection<Document> coll = mongoDB.getCollection("session");
            coll.insertOne(session, new Document("_id", 1));
            same(coll.find(session).first(), new Document("_id", 1));
        }
    }

    private void bulkWrite() {
        MongoCollection<Document> bulk = mongoDB.getCollection("bulk");
        BulkWriteResult result = bulk.bulkWrite(List.of(
                new InsertOneModel<>(new Document("_id", 1)),
                new UpdateOneModel<>(Filters.eq(2), Updates.set("a", 1), new UpdateOptions().upsert(true)),
                new DeleteOneModel<>(Filters.eq(1))));
        same(List.of(result.getInsertedCount(), result.getUpserts().size(), result.getDeletedCount()), List.of(1, 1, 1));
        try {
            bulk.bulkWrite(List.of(new InsertOneModel<>(new Document("_id", 2)), new InsertOneModel<>(new Document("_id", 3))), new BulkWriteOptions().ordered(false));
            throw new AssertionError("a duplicate was accepted");
        } catch (MongoBulkWriteException e) {
            same(e.getWriteErrors().get(0).getCode(), 11000);
            same(e.getWriteResult().getInsertedCount(), 1);
        }
    }

    private void indexes() throws Exception {
        MongoCollection<Document> coll = mongoDB.getCollection("indexes");
        same(coll.createIndex(Indexes.ascending("email"), new IndexOptions().unique(true)), "email_1");
        same(coll.createIndex(Indexes.compoundIndex(Indexes.ascending("a"), Indexes.descending("b"))), "a_1_b_-1");
        List<String> names = new ArrayList<>();
        coll.listIndexes().forEach(i -> names.add(i.getString("name")));
        same(names, List.of("_id_", "email_1", "a_1_b_-1"));
        coll.insertOne(new Document("email", "a@x"));
        try {
            coll.insertOne(new Document("email", "a@x"));
            throw new AssertionError("a duplicate was accepted");
        } catch (MongoWriteException e) {
            same(e.getError().getCategory(), ErrorCategory.DUPLICATE_KEY);
        }
        Document plan = coll.find(Filters.eq("email", "a@x")).explain(ExplainVerbosity.QUERY_PLANNER).get("queryPlanner", Document.class).get("winningPlan", Document.class);
        same(List.of(plan.getString("stage"), plan.getString("indexName")), List.of("EXPRESS_IXSCAN", "email_1"));
        coll.dropIndex("email_1");
        refused(27, () -> {
            coll.dropIndex("email_1");
            return null;
        });
    }

    private void findAndModify() {
        MongoCollection<Document> coll = mongoDB.getCollection("fam");
        FindOneAndUpdateOptions after = new FindOneAndUpdateOptions().upsert(true).returnDocument(ReturnDocument.AFTER);
        same(coll.findOneAndUpdate(Filters.eq(1), Updates.inc("n", 1), after).getInteger("n"), 1);
        same(coll.findOneAndReplace(Filters.eq(1), new Document("n", 7)).getInteger("n"), 1);
        same(coll.findOneAndDelete(Filters.eq(1)).getInteger("n"), 7);
        same(coll.findOneAndDelete(Filters.eq(1)), null);
    }

    private void errorsAndStatistics() throws Exception {
        refused(59, () -> mongoDB.runCommand(new Document("noSuchCommand", 1)));
        refused(2, () -> mongoDB.getCollection("people").find(new Document("a", new Document("$noSuch", 1))).first());
        same(mongoDB.runCommand(new Document("collStats", "people")).getInteger("count"), 3);
        holds(mongoDB.listCollectionNames().into(new ArrayList<>()).contains("people"), "listCollections");
        holds(client.listDatabaseNames().into(new ArrayList<>()).contains("e2e_java"), "listDatabases");
    }

    private void gridFS() {
        byte[] data = new byte[600_000];
        Arrays.fill(data, (byte) 'e');
        ObjectId id = GridFSBuckets.create(mongoDB).uploadFromStream("tide.bin", new ByteArrayInputStream(data));
        ByteArrayOutputStream back = new ByteArrayOutputStream();
        GridFSBuckets.create(mongoDB).downloadToStream(id, back);
        holds(Arrays.equals(data, back.toByteArray()), "the same bytes");
        GridFSBuckets.create(mongoDB).delete(id);
        same(mongoDB.getCollection("fs.chunks").countDocuments(), 0L);
    }

    private static List<String> ids(MongoCollection<Document> collection) {
        List<String> ids = new ArrayList<>();
        collection.find().forEach(d -> ids.add(d.getString("_id")));
        return ids;
    }

    private void ttlOfDocuments() throws Exception {
        MongoCollection<Document> collection = mongoDB.getCollection("collectionName");
        String index = collection.createIndex(Indexes.ascending("_ts"),
                new IndexOptions().expireAfter(10L, TimeUnit.SECONDS));
        same(index, "_ts_1");
        long before = System.currentTimeMillis();
        collection.insertMany(List.of(
                new Document("_id", "double").append("ttl", 20.0), new Document("_id", "int").append("ttl", 20), new Document("_id", "long").append("ttl", 20L),
                new Document("_id", "fraction").append("ttl", 20.5), new Document("_id", "large").append("ttl", 2147483649L),
                new Document("_id", "never").append("ttl", -1L)));
        long after = System.currentTimeMillis();

        sleepUntil(before + 8_000);
        int seen = ids(collection).size();
        holds(System.currentTimeMillis() < before + 10_000, TOO_SLOW);
        same(seen, 6);

        sleepUntil(after + 10_050);
        List<String> left = ids(collection);
        holds(System.currentTimeMillis() < before + 20_000, TOO_SLOW);
        same(left, List.of("double", "int", "long", "never"));

        sleepUntil(after + 20_050);
        same(ids(collection), List.of("never"));
    }

    private void ttlOfDates() throws Exception {
        MongoCollection<Document> collection = mongoDB.getCollection("by_date");
        same(collection.createIndex(Indexes.descending("at"), new IndexOptions().expireAfter(0L, TimeUnit.SECONDS)), "at_-1");
        same(collection.listIndexes().into(new ArrayList<>()).get(1).getInteger("expireAfterSeconds"), 0);
        Date soon = new Date(System.currentTimeMillis() + 2_000);
        collection.insertMany(List.of(
                new Document("_id", "soon").append("at", soon), new Document("_id", "past").append("at", new Date(0)),
                new Document("_id", "future").append("at", new Date(soon.getTime() + 3_600_000)), new Document("_id", "number").append("at", 0L)));
        eventually(RECLAIM_MILLIS, "the past goes", () -> !ids(collection).contains("past"));
        boolean seen = ids(collection).contains("soon");
        if (System.currentTimeMillis() < soon.getTime()) {
            holds(seen, "gone before its time");
        }
        eventually(RECLAIM_MILLIS, "soon goes", () -> ids(collection).equals(List.of("future", "number")));
        holds(System.currentTimeMillis() >= soon.getTime(), "gone before its time");
    }
}
