package ebb;

import static ebb.Checks.holds;
import static ebb.Checks.same;

import com.mongodb.client.MongoClient;
import com.mongodb.client.MongoClients;
import com.mongodb.client.MongoCollection;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicBoolean;
import org.bson.Document;

/**
 * The Java driver on a replica set of three whose primary is killed, and stopped, again and again: it sends a write again that got no answer, so that
 * the application sees no error.
 */
public final class Failover {
    private static final int BESIDE = 2;
    private static final int PAUSE_MILLIS = 5;

    private final HttpClient http = HttpClient.newHttpClient();
    private final MongoCollection<Document> documents;
    private final AtomicBoolean over = new AtomicBoolean();

    private Failover(MongoClient client) {
        this.documents = client.getDatabase("e2e_java_failover").getCollection("c");
    }

    public static void main(String[] args) {
        Checks checks = new Checks();
        try (MongoClient client = MongoClients.create(System.getenv("EBB_URI"))) {
            Failover failover = new Failover(client);
            checks.check("no write fails", failover::run);
        }
        checks.done();
    }

    private void ask(String path) throws IOException, InterruptedException {
        HttpRequest request = HttpRequest.newBuilder(URI.create(System.getenv("EBB_FAILOVER_URL") + "/" + path)).build();
        HttpResponse<String> answer = http.send(request, HttpResponse.BodyHandlers.ofString());
        holds(answer.statusCode() == 200, answer.body());
    }

    private void insert(String id) {
        documents.insertOne(new Document("_id", id));
    }

    /** Writes until the last failover is over, and returns how much. */
    private long write(String name) {
        long n = 0;
        for (; !over.get(); n++) {
            insert(name + " " + n);
            try {
                Thread.sleep(PAUSE_MILLIS);
            } catch (InterruptedException e) {
                throw new IllegalStateException(e);
            }
        }
        return n;
    }

    private void run() throws IOException, InterruptedException {
        int failovers = Integer.parseInt(System.getenv("EBB_FAILOVERS"));
        insert("first");
        List<CompletableFuture<Long>> writers = new ArrayList<>();
        for (int i = 0; i < BESIDE; i++) {
            String name = "writer " + i;
            writers.add(CompletableFuture.supplyAsync(() -> write(name)));
        }
        long all = 1;
        try {
            for (int n = 0; n < failovers; n++) {
                for (String how : List.of("kill", "stop")) {
                    ask(how);
                    long began = System.nanoTime();
                    insert(how + " " + n);
                    all++;
                    ask("restore?how=" + how + "&millis=" + (System.nanoTime() - began) / 1_000_000);
                }
            }
        } finally {
            over.set(true);
        }
        for (CompletableFuture<Long> writer : writers) {
            all += writer.join();
        }
        same(documents.countDocuments(), all);
    }
}
