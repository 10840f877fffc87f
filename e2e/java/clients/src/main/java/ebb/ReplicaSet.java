package ebb;

import static ebb.Checks.holds;
import static ebb.Checks.refused;
import static ebb.Checks.same;

import com.mongodb.ClientSessionOptions;
import com.mongodb.MongoException;
import com.mongodb.ReadConcern;
import com.mongodb.client.ClientSession;
import com.mongodb.client.MongoClient;
import com.mongodb.client.MongoClients;
import com.mongodb.client.MongoCollection;
import com.mongodb.client.MongoDatabase;
import com.mongodb.client.model.Filters;
import com.mongodb.client.model.Updates;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import org.bson.Document;

/** The Java driver with a replica set of one, by the set's name and directly: transactions, their conflicts, and sessions. */
public final class ReplicaSet {
    private final MongoClient client;
    private final MongoDatabase mongoDB;
    private final MongoCollection<Document> accounts;
    private final MongoCollection<Document> savings;

    private ReplicaSet(MongoClient client, String name) {
        this.client = client;
        this.mongoDB = client.getDatabase(name);
        this.accounts = mongoDB.getCollection("accounts");
        this.savings = mongoDB.getCollection("savings");
    }

    public static void main(String[] args) {
        Checks checks = new Checks();
        for (String how : List.of("by name", "directly")) {
            boolean direct = how.equals("directly");
            try (MongoClient client = MongoClients.create(System.getenv(direct ? "EBB_DIRECT_URI" : "EBB_URI"))) {
                new ReplicaSet(client, direct ? "e2e_java_direct" : "e2e_java_set").run(checks, how);
            }
        }
        checks.done();
    }

    private void run(Checks checks, String how) {
        accounts.insertOne(new Document("_id", 1).append("balance", 100));
        savings.insertOne(new Document("_id", 1).append("balance", 0));
        checks.check(how + ": the primary of the set", this::primary);
        checks.check(how + ": withTransaction over two collections", this::transaction);
        checks.check(how + ": a conflict has its label", this::conflict);
        checks.check(how + ": ten transfers at once", this::atOnce);
        checks.check(how + ": a causally consistent session", this::causal);
    }

    private void primary() {
        Document hello = mongoDB.runCommand(new Document("hello", 1));
        same(hello.getString("setName"), "e2e");
        same(hello.getBoolean("isWritablePrimary"), true);
        same(hello.getList("hosts", String.class), List.of(hello.getString("me")));
        same(hello.getString("primary"), hello.getString("me"));
    }

    private List<Integer> balances() {
        return List.of(accounts.find(Filters.eq(1)).first().getInteger("balance"), savings.find(Filters.eq(1)).first().getInteger("balance"));
    }

    private void transfer(int amount) {
        try (ClientSession session = client.startSession()) {
            session.withTransaction(() -> {
                accounts.updateOne(session, Filters.eq(1), Updates.inc("balance", -amount));
                savings.updateOne(session, Filters.eq(1), Updates.inc("balance", amount));
                if (accounts.find(session, Filters.eq(1)).first().getInteger("balance") < 0) {
                    throw new IllegalStateException("not enough");
                }
                return null;
            });
        }
    }

    private void transaction() {
        transfer(30);
        same(balances(), List.of(70, 30));
        try {
            transfer(500);
            throw new AssertionError("too much was moved");
        } catch (IllegalStateException e) {
            same(e.getMessage(), "not enough");
        }
        same(balances(), List.of(70, 30));
    }

    private void conflict() throws Exception {
        try (ClientSession one = client.startSession(); ClientSession other = client.startSession()) {
            one.startTransaction();
            other.startTransaction();
            accounts.updateOne(one, Filters.eq(1), Updates.inc("balance", -1));
            MongoException e = refused(112, () -> accounts.updateOne(other, Filters.eq(1), Updates.inc("balance", -2)));
            holds(e.hasErrorLabel(MongoException.TRANSIENT_TRANSACTION_ERROR_LABEL), "the label");
            other.abortTransaction();
            one.commitTransaction();
        }
        same(balances(), List.of(69, 30));
    }

    private void atOnce() throws InterruptedException {
        List<Thread> threads = new ArrayList<>(IntStream.range(0, 10).mapToObj(i -> new Thread(() -> transfer(1))).toList());
        threads.forEach(Thread::start);
        for (Thread thread : threads) {
            thread.join();
        }
        same(balances(), List.of(59, 40));
    }

    private void causal() {
        try (ClientSession session = client.startSession(ClientSessionOptions.builder().causallyConsistent(true).build())) {
            savings.insertOne(session, new Document("_id", 2));
            holds(session.getOperationTime() != null && session.getClusterTime() != null, "the times of the session");
            same(savings.withReadConcern(ReadConcern.MAJORITY).find(session, Filters.eq(2)).first(), new Document("_id", 2));
        }
    }
}
