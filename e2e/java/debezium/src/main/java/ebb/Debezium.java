package ebb;

import static ebb.Checks.holds;
import static ebb.Checks.same;

import com.mongodb.client.ClientSession;
import com.mongodb.client.MongoClient;
import com.mongodb.client.MongoClients;
import com.mongodb.client.MongoCollection;
import com.mongodb.client.MongoDatabase;
import com.mongodb.client.model.ChangeStreamPreAndPostImagesOptions;
import com.mongodb.client.model.CreateCollectionOptions;
import com.mongodb.client.model.Filters;
import com.mongodb.client.model.IndexOptions;
import com.mongodb.client.model.Indexes;
import com.mongodb.client.model.Updates;
import io.debezium.engine.ChangeEvent;
import io.debezium.engine.DebeziumEngine;
import io.debezium.engine.format.Json;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Date;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.bson.Document;

/** Debezium's connector, in its embedded engine: a snapshot, then the stream, going on where it stopped whoever was restarted. */
public final class Debezium {
    private static final int PATIENCE_SECONDS = 60; // the connector rests up to ten seconds between its tries
    private static final String DB = "inventory";

    private final MongoClient client;
    private final MongoDatabase mongoDB;
    private final MongoCollection<Document> customers;
    private final Path folder;

    private Debezium(MongoClient client, Path folder) {
        this.client = client;
        this.mongoDB = client.getDatabase(DB);
        this.customers = mongoDB.getCollection("customers");
        this.folder = folder;
    }

    public static void main(String[] args) {
        Checks checks = new Checks();
        try (MongoClient client = MongoClients.create(System.getenv("EBB_URI"))) {
            Debezium debezium = new Debezium(client, Path.of(System.getenv("HOME")));
            checks.check("the snapshot, and what is written from then on", debezium::snapshotAndStream);
            checks.check("a restart of the engine goes on where it stopped", debezium::goesOn);
            checks.check("a restart of the server after kill -9 is waited for", debezium::outlivesTheServer);
        }
        checks.done();
    }

    /** An engine under way, and what it has told. */
    private final class Engine implements AutoCloseable {
        private final BlockingQueue<String> events = new LinkedBlockingQueue<>();
        private final CompletableFuture<String> ended = new CompletableFuture<>();
        private final ExecutorService thread = Executors.newSingleThreadExecutor();
        private final DebeziumEngine<ChangeEvent<String, String>> engine;

        Engine() {
            Properties settings = new Properties();
            settings.setProperty("name", "ebb");
            settings.setProperty("connector.class", "io.debezium.connector.mongodb.MongoDbConnector");
            settings.setProperty("mongodb.connection.string", System.getenv("EBB_URI"));
            settings.setProperty("topic.prefix", "ebb");
            settings.setProperty("collection.include.list", DB + ".customers," + DB + ".visits");
            settings.setProperty("capture.mode", "change_streams_update_full_with_pre_image");
            settings.setProperty("offset.storage", "org.apache.kafka.connect.storage.FileOffsetBackingStore");
            settings.setProperty("offset.storage.file.filename", folder.resolve("offsets").toString());
            settings.setProperty("offset.flush.interval.ms", "0"); // after each event
            settings.setProperty("tombstones.on.delete", "false");
            engine = DebeziumEngine.create(Json.class).using(settings)
                .using((success, message, error) -> ended.complete(success ? "" : message + ": " + error))
                .notifying(event -> events.add(brief(event.value())))
                .build();
            thread.execute(engine);
        }

        /** The next events. */
        List<String> take(int count) throws InterruptedException {
            List<String> taken = new ArrayList<>();
            while (taken.size() < count) {
                taken.add(next(taken));
            }
            return taken;
        }

        /** The next events until this one comes; one that was told may be told again when it goes on, so each counts once. */
        List<String> takeUntil(String last) throws InterruptedException {
            LinkedHashSet<String> taken = new LinkedHashSet<>();
            do {
                taken.add(next(taken));
            } while (!taken.contains(last));
            return List.copyOf(taken);
        }

        private String next(Object taken) throws InterruptedException {
            String event = events.poll(PATIENCE_SECONDS, TimeUnit.SECONDS);
            holds(event != null, "within " + PATIENCE_SECONDS + " s came only " + taken + (ended.isDone() ? "; the engine has ended: " + ended.join() : ""));
            return event;
        }

        /** Stops it. Nothing may have come that was not taken. */
        @Override
        public void close() throws Exception {
            engine.close();
            same(ended.get(PATIENCE_SECONDS, TimeUnit.SECONDS), "");
            thread.shutdown();
            same(List.copyOf(events), List.of());
        }
    }

    /** What an event tells: the operation (read, create, update, delete), the document before it, and the one behind it. */
    private static String brief(String value) {
        Document payload = Document.parse(value);
        payload = payload.get("payload", payload);
        return payload.getString("op") + " " + name(payload.getString("before")) + ">" + name(payload.getString("after"));
    }

    private static String name(String json) {
        if (json == null) {
            return "";
        }
        Document doc = Document.parse(json);
        return doc.get("_id") + (doc.containsKey("name") ? ":" + doc.getString("name") : "");
    }

    private static Document customer(int id, String name) {
        return new Document("_id", id).append("name", name);
    }

    private void snapshotAndStream() throws Exception {
        CreateCollectionOptions images = new CreateCollectionOptions().changeStreamPreAndPostImagesOptions(new ChangeStreamPreAndPostImagesOptions(true));
        mongoDB.createCollection("customers", images);
        mongoDB.createCollection("visits", images);
        mongoDB.getCollection("visits").createIndex(Indexes.ascending("until"), new IndexOptions().expireAfter(0L, TimeUnit.SECONDS));
        mongoDB.getCollection("others").insertOne(customer(1, "not asked for"));
        customers.insertMany(List.of(customer(1, "Ada"), customer(2, "Bob")));
        try (Engine engine = new Engine()) {
            same(engine.take(2), List.of("r >1:Ada", "r >2:Bob"));
            customers.insertOne(customer(3, "Cleo"));
            customers.updateOne(Filters.eq(3), Updates.set("name", "Dora"));
            customers.replaceOne(Filters.eq(2), customer(2, "Bert"));
            customers.deleteOne(Filters.eq(1));
            same(engine.take(4), List.of("c >3:Cleo", "u 3:Cleo>3:Dora", "u 2:Bob>2:Bert", "d 1:Ada>"));
            try (ClientSession session = client.startSession()) {
                session.withTransaction(() -> {
                    customers.insertOne(session, customer(4, "Emil"));
                    mongoDB.getCollection("others").insertOne(session, customer(4, "not asked for"));
                    customers.deleteOne(session, Filters.eq(2));
                    return null;
                });
            }
            same(engine.take(2), List.of("c >4:Emil", "d 2:Bert>"));
            mongoDB.getCollection("visits").insertMany(List.of(visit(1, 1000), visit(2, 3_600_000)));
            same(engine.take(3), List.of("c >1", "c >2", "d 1>")); // the first has expired
        }
    }

    private static Document visit(int id, long millis) {
        return new Document("_id", id).append("until", new Date(System.currentTimeMillis() + millis));
    }

    private void goesOn() throws Exception {
        customers.insertOne(customer(5, "Fanny"));
        customers.updateOne(Filters.eq(3), Updates.set("name", "Dorothy"));
        customers.deleteOne(Filters.eq(4));
        mongoDB.getCollection("visits").insertOne(visit(3, 0));
        try (Engine engine = new Engine()) {
            same(engine.take(5), List.of("c >5:Fanny", "u 3:Dora>3:Dorothy", "d 4:Emil>", "c >3", "d 3>"));
            customers.insertOne(customer(6, "Gerd"));
            same(engine.take(1), List.of("c >6:Gerd"));
        }
    }

    private void outlivesTheServer() throws Exception {
        try (Engine engine = new Engine()) {
            customers.insertOne(customer(7, "Hugo"));
            same(engine.take(1), List.of("c >7:Hugo"));
            HttpRequest request = HttpRequest.newBuilder(URI.create(System.getenv("EBB_KILL_URL"))).build();
            HttpResponse<String> answer = HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofString());
            holds(answer.statusCode() == 200, answer.body());
            List<String> want = new ArrayList<>();
            for (int i = 8; i < 18; i++) {
                customers.insertOne(customer(i, "after"));
                want.add("c >" + i + ":after");
            }
            List<String> got = new ArrayList<>(engine.takeUntil("c >17:after"));
            got.remove("c >7:Hugo");
            same(got, want);
        }
    }
}
