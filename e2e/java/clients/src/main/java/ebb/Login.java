package ebb;

import static ebb.Checks.holds;
import static ebb.Checks.same;

import com.mongodb.ConnectionString;
import com.mongodb.MongoClientSettings;
import com.mongodb.MongoCommandException;
import com.mongodb.MongoCredential;
import com.mongodb.MongoException;
import com.mongodb.MongoSecurityException;
import com.mongodb.client.MongoClient;
import com.mongodb.client.MongoClients;
import com.mongodb.client.MongoCollection;
import com.mongodb.client.MongoDatabase;
import java.util.List;
import org.bson.Document;

/** The Java driver logs in, and is let do what its user may do. */
public final class Login {
    private static final String NAME = "java";

    public static void main(String[] args) throws Exception {
        Checks checks = new Checks();
        int i = 0;
        for (String uri : System.getenv("EBB_IN").split("\n")) {
            checks.check("logs in " + i++, () -> works(uri));
        }
        for (String uri : System.getenv("EBB_OUT").split("\n")) {
            checks.check("does not log in " + i++, () -> refusedAt(uri));
        }
        checks.check("roles change while a user is connected", Login::roles);
        if (System.getenv("EBB_PEOPLE") != null) {
            checks.check("is told where to get a token", Login::people);
        }
        checks.done();
    }

    private static void works(String uri) {
        try (MongoClient client = MongoClients.create(uri)) {
            MongoCollection<Document> docs = client.getDatabase("e2e_login").getCollection(NAME);
            docs.insertOne(new Document());
            holds(docs.find().first() != null, "there is a document");
        }
    }

    private static void people() {
        String[] told = new String[1];
        MongoCredential.OidcCallback person = context -> {
            told[0] = context.getIdpInfo().getClientId();
            return new MongoCredential.OidcCallbackResult(System.getenv("EBB_TOKEN"));
        };
        // The driver wants the callback beside the credential, and so no mechanism in the address.
        MongoClientSettings settings = MongoClientSettings.builder()
                .applyConnectionString(new ConnectionString(System.getenv("EBB_PEOPLE").replace("&authMechanism=MONGODB-OIDC", "")))
                .credential(MongoCredential.createOidcCredential(null).withMechanismProperty(MongoCredential.OIDC_HUMAN_CALLBACK_KEY, person))
                .build();
        try (MongoClient client = MongoClients.create(settings)) {
            client.getDatabase("e2e_login").getCollection(NAME).insertOne(new Document());
        }
        same(told[0], "e2e");
    }

    private static void refusedAt(String uri) {
        int code = 0;
        try (MongoClient client = MongoClients.create(uri)) {
            client.getDatabase("admin").runCommand(new Document("connectionStatus", 1));
        } catch (MongoSecurityException e) {
            code = ((MongoCommandException) e.getCause()).getErrorCode();
        }
        same(code, 18);
    }

    private static void roles() {
        try (MongoClient root = MongoClients.create(System.getenv("EBB_URI"));
                MongoClient user = MongoClients.create(System.getenv("EBB_AS").replace("NAME", NAME))) {
            MongoDatabase users = root.getDatabase(NAME);
            users.runCommand(new Document("createUser", NAME).append("pwd", NAME).append("roles", List.of("readWrite")));
            MongoCollection<Document> own = user.getDatabase(NAME).getCollection("c");
            own.insertOne(new Document("a", 1));
            refused(() -> user.getDatabase("e2e_login").getCollection("c").find().first());
            refused(() -> user.getDatabase(NAME).runCommand(new Document("createUser", "other").append("pwd", "x").append("roles", List.of())));
            users.runCommand(new Document("revokeRolesFromUser", NAME).append("roles", List.of("readWrite")));
            users.runCommand(new Document("grantRolesToUser", NAME).append("roles", List.of("read")));
            same(own.find().first().getInteger("a"), 1);
            refused(() -> own.insertOne(new Document()));
            users.runCommand(new Document("dropUser", NAME));
            refused(() -> own.find().first());
        }
    }

    private static void refused(Runnable what) {
        int code = 0;
        try {
            what.run();
        } catch (MongoException e) {
            code = e.getCode();
        }
        same(code, 13);
    }

    private Login() {}
}
