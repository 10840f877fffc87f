package ebb;

import static ebb.Checks.holds;
import static ebb.Checks.same;

import com.mongodb.MongoException;
import com.mongodb.MongoServerException;
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
import java.util.concurrent.atomic.AtomicInteger;
import org.bson.Document;

/**
 * The Java driver on a replica set of three whose primary is killed, and stopped, again and again: it sends a write again that got no answer, and no
 * server answers with an error. The driver sends a write twice at most, and gives up what meets the end of a server twice, such as a connection that is refused; the
 * application begins that again, and tells how often.
 */
public final class Failover {
    private static final int BESIDE = 2;
    private static final int PAUSE_MILLIS = 5;
    /** How often a write is begun at most. */
    private static final int ATTEMPTS = 10;
    private static final int DUPLICATE_KEY = 11000;

    private final HttpClient http = HttpClient.newHttpClient();
    private final MongoCollection<Document> documents;
    private final AtomicBoolean over = new AtomicBoolean();
    private final AtomicInteger givenUp = new AtomicInteger();

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
        for (int attempt = 1; ; attempt++) {
            try {
                documents.insertOne(new Document("_id", id));
                return;
            } catch (MongoServerException e) { // which a server has said
                if (attempt > 1 && e.getCode() == DUPLICATE_KEY) {
                    return; // it was there already
                }
                throw e;
            } catch (MongoException e) {
                if (attempt == ATTEMPTS) {
                    throw e;
                }
                givenUp.incrementAndGet();
            }
        }
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
        ask("told?given=" + givenUp + "&of=" + all);
    }
}
