package ebb;

import static ebb.Checks.holds;
import static ebb.Checks.same;

import com.mongodb.ClientSessionOptions;
import com.mongodb.ReadConcern;
import com.mongodb.TransactionOptions;
import com.mongodb.WriteConcern;
import com.mongodb.client.ChangeStreamIterable;
import com.mongodb.client.ClientSession;
import com.mongodb.client.MongoChangeStreamCursor;
import com.mongodb.client.MongoClient;
import com.mongodb.client.MongoClients;
import com.mongodb.client.MongoCollection;
import com.mongodb.client.MongoDatabase;
import com.mongodb.client.model.Filters;
import com.mongodb.client.model.Updates;
import com.mongodb.client.model.changestream.ChangeStreamDocument;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import org.bson.BsonDocument;
import org.bson.BsonTimestamp;
import org.bson.BsonValue;
import org.bson.Document;

/** The Java driver whose only member is killed under it: change streams, sessions and transactions go on where they were. */
public final class Killed {
    private static final int PATIENCE_SECONDS = 30;
    private static final int END = 20; // the last document

    private final MongoClient client;
    private final MongoDatabase mongoDB;

    private Killed(MongoClient client) {
        this.client = client;
        this.mongoDB = client.getDatabase("e2e_java_killed").withWriteConcern(WriteConcern.MAJORITY);
    }

    public static void main(String[] args) {
        Checks checks = new Checks();
        try (MongoClient client = MongoClients.create(System.getenv("EBB_URI"))) {
            Killed killed = new Killed(client);
            checks.check("streams go on, each event once", killed::streams);
            checks.check("a causally consistent session reads what it has written", killed::causal);
            checks.check("withTransaction begins again", killed::transaction);
        }
        checks.done();
    }

    /** Kills the server, and returns when it is there again. */
    static void kill() {
        try {
            HttpRequest request = HttpRequest.newBuilder(URI.create(System.getenv("EBB_KILL_URL"))).build();
            HttpResponse<String> answer = HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofString());
            holds(answer.statusCode() == 200, answer.body());
        } catch (java.io.IOException | InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    /** Reads a stream until the last document; tokens has where each event was. */
    private static List<Integer> take(MongoChangeStreamCursor<ChangeStreamDocument<Document>> stream, Map<Integer, BsonDocument> tokens) {
        List<Integer> ids = new ArrayList<>();
        while (ids.isEmpty() || ids.get(ids.size() - 1) != END) {
            ChangeStreamDocument<Document> event = stream.next();
            ids.add(event.getDocumentKey().getInt32("_id").getValue());
            tokens.put(ids.get(ids.size() - 1), event.getResumeToken());
        }
        return ids;
    }

    private static List<Integer> inTime(CompletableFuture<List<Integer>> taken) throws Exception {
        return taken.get(PATIENCE_SECONDS, TimeUnit.SECONDS);
    }

    private static List<Integer> take(ChangeStreamIterable<Document> from) throws Exception {
        return inTime(CompletableFuture.supplyAsync(() -> {
            try (MongoChangeStreamCursor<ChangeStreamDocument<Document>> stream = from.cursor()) {
                return take(stream, new HashMap<>());
            }
        }));
    }

    private static List<Integer> range(int from) {
        return IntStream.rangeClosed(from, END).boxed().toList();
    }

    private void streams() throws Exception {
        mongoDB.createCollection("things");
        MongoCollection<Document> things = mongoDB.getCollection("things");
        Map<Integer, BsonDocument> tokens = new HashMap<>();
        BsonTimestamp before;
        try (MongoChangeStreamCursor<ChangeStreamDocument<Document>> stream = things.watch().cursor(); ClientSession half = client.startSession()) {
            CompletableFuture<List<Integer>> listening = CompletableFuture.supplyAsync(() -> take(stream, tokens));
            half.startTransaction();
            things.insertOne(half, new Document("_id", -1)); // never committed
            try (ClientSession session = client.startSession()) {
                for (int i = 0; i < 10; i++) {
                    things.insertOne(session, new Document("_id", i));
                }
                before = session.getOperationTime();
            }
            kill();
            for (int i = 10; i <= END; i++) {
                things.insertOne(new Document("_id", i));
            }
            same(inTime(listening), range(0));
        }
        for (int after : List.of(3, 9, 12)) {
            same(take(things.watch().resumeAfter(tokens.get(after))), range(after + 1));
            same(take(things.watch().startAfter(tokens.get(after))), range(after + 1));
        }
        same(take(things.watch().startAtOperationTime(before)), range(9));
        same(things.countDocuments(), (long) END + 1);
    }

    private void causal() {
        MongoCollection<Document> causal = mongoDB.getCollection("causal").withReadConcern(ReadConcern.MAJORITY);
        ClientSessionOptions consistent = ClientSessionOptions.builder().causallyConsistent(true).build();
        try (ClientSession session = client.startSession(consistent); ClientSession other = client.startSession(consistent)) {
            causal.insertOne(session, new Document("_id", 1).append("n", 1));
            BsonTimestamp operationTime = session.getOperationTime();
            kill();
            same(causal.find(session, Filters.eq(1)).first(), new Document("_id", 1).append("n", 1));
            causal.updateOne(session, Filters.eq(1), Updates.inc("n", 1));
            BsonValue later = session.getClusterTime().get("clusterTime");
            holds(session.getOperationTime().compareTo(operationTime) > 0 && later.asTimestamp().compareTo(operationTime) > 0, "time goes on");
            other.advanceClusterTime(session.getClusterTime()); // as if it had heard of it elsewhere
            other.advanceOperationTime(session.getOperationTime());
            same(causal.find(other, Filters.eq(1)).first().getInteger("n"), 2);
        }
    }

    private void transaction() {
        MongoCollection<Document> one = mongoDB.getCollection("one");
        MongoCollection<Document> other = mongoDB.getCollection("other");
        for (MongoCollection<Document> coll : List.of(one, other)) {
            coll.insertOne(new Document("_id", 1).append("n", 0));
        }
        AtomicInteger tries = new AtomicInteger();
        try (ClientSession session = client.startSession()) {
            String result = session.withTransaction(() -> {
                one.updateOne(session, Filters.eq(1), Updates.inc("n", 1));
                if (tries.incrementAndGet() == 1) {
                    kill();
                }
                other.updateOne(session, Filters.eq(1), Updates.inc("n", 1));
                return "moved";
            }, TransactionOptions.builder().readConcern(ReadConcern.SNAPSHOT).writeConcern(WriteConcern.MAJORITY).build());
            same(result, "moved");
        }
        same(List.of(tries.get(), one.find().first().getInteger("n"), other.find().first().getInteger("n")), List.of(2, 1, 1));
    }
}
