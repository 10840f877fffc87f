package ebb;

import static ebb.Checks.holds;
import static ebb.Checks.same;

import com.mongodb.ConnectionString;
import com.mongodb.MongoClientSettings;
import com.mongodb.MongoSecurityException;
import com.mongodb.MongoTimeoutException;
import com.mongodb.client.MongoClient;
import com.mongodb.client.MongoClients;
import com.mongodb.client.MongoCollection;
import java.io.ByteArrayInputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyFactory;
import java.security.KeyStore;
import java.security.PrivateKey;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.security.spec.PKCS8EncodedKeySpec;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;
import org.bson.Document;

/** The Java driver over TLS, with and without a certificate. It knows nothing of PEM in a URI, so the files are read here. */
public final class Tls {
    private static final char[] NO_PASSWORD = new char[0];

    public static void main(String[] args) throws Exception {
        SSLContext own = context(System.getenv("EBB_PEM"));
        SSLContext bare = context(null);
        Checks checks = new Checks();
        checks.check("over TLS with a certificate", () -> works(System.getenv("EBB_URI"), own));
        checks.check("refused without a certificate", () -> refused(System.getenv("EBB_BARE"), bare));
        checks.check("refused without TLS", () -> refused(System.getenv("EBB_PLAIN"), null));
        checks.check("logged in by the certificate", () -> works(System.getenv("EBB_X509"), own));
        checks.check("not logged in by a certificate of no user", () -> refused(System.getenv("EBB_STRANGER"), context(System.getenv("EBB_STRANGER_PEM"))));
        checks.check("without a certificate where that is allowed", () -> works(System.getenv("EBB_OPEN"), bare));
        checks.done();
    }

    private static void works(String uri, SSLContext context) {
        try (MongoClient client = connect(uri, context, 20_000)) {
            MongoCollection<Document> docs = client.getDatabase("e2e_tls").getCollection("java");
            docs.deleteMany(new Document());
            List<Document> all = new ArrayList<>();
            for (int i = 0; i < 50; i++) {
                all.add(new Document("_id", i).append("pad", "x".repeat(i * 1000)));
            }
            docs.insertMany(all);
            same(docs.find().sort(new Document("_id", -1)).first().getString("pad").length(), 49_000);
        }
    }

    private static void refused(String uri, SSLContext context) {
        boolean connected = false;
        try (MongoClient client = connect(uri, context, 500)) {
            client.getDatabase("admin").runCommand(new Document("ping", 1));
            connected = true;
        } catch (MongoTimeoutException | MongoSecurityException e) {
            // as it should be
        }
        holds(!connected, "refused");
    }

    /** Connects; the names of PEM files in the URI are for other drivers. */
    private static MongoClient connect(String uri, SSLContext context, int millis) {
        String known = uri.replaceAll("&tls(CAFile|CertificateKeyFile)=[^&]*", "");
        MongoClientSettings.Builder settings = MongoClientSettings.builder()
                .applyConnectionString(new ConnectionString(known + "&serverSelectionTimeoutMS=" + millis));
        if (context != null) {
            settings.applyToSslSettings(s -> s.enabled(true).context(context));
        }
        return MongoClients.create(settings.build());
    }

    /** The authority, and the certificate and key of a file where the client is to have one. */
    private static SSLContext context(String pem) throws Exception {
        KeyStore trusted = KeyStore.getInstance("PKCS12");
        trusted.load(null, NO_PASSWORD);
        trusted.setCertificateEntry("ca", certificate(System.getenv("EBB_CA")));
        TrustManagerFactory trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        trust.init(trusted);
        KeyManagerFactory keys = KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm());
        KeyStore own = KeyStore.getInstance("PKCS12");
        own.load(null, NO_PASSWORD);
        if (pem != null) {
            PrivateKey key = KeyFactory.getInstance("EC").generatePrivate(new PKCS8EncodedKeySpec(block(pem, "PRIVATE KEY")));
            own.setKeyEntry("own", key, NO_PASSWORD, new Certificate[] {certificate(pem)});
        }
        keys.init(own, NO_PASSWORD);
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(keys.getKeyManagers(), trust.getTrustManagers(), null);
        return context;
    }

    private static Certificate certificate(String file) throws Exception {
        return CertificateFactory.getInstance("X.509").generateCertificate(new ByteArrayInputStream(block(file, "CERTIFICATE")));
    }

    private static byte[] block(String file, String kind) throws Exception {
        String text = Files.readString(Path.of(file));
        String begin = "-----BEGIN " + kind + "-----";
        int from = text.indexOf(begin) + begin.length();
        return Base64.getMimeDecoder().decode(text.substring(from, text.indexOf("-----END", from)));
    }

    private Tls() {}
}
