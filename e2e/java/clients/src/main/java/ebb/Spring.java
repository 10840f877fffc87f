package ebb;

import static ebb.Checks.RECLAIM_MILLIS;
import static ebb.Checks.eventually;
import static ebb.Checks.holds;
import static ebb.Checks.same;

import com.mongodb.client.MongoClient;
import com.mongodb.client.MongoClients;
import com.mongodb.client.model.changestream.FullDocumentBeforeChange;
import com.mongodb.client.model.changestream.OperationType;
import java.lang.reflect.Method;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import org.bson.Document;
import org.springframework.context.annotation.AnnotationConfigApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.dao.DuplicateKeyException;
import org.springframework.data.annotation.Id;
import org.springframework.data.mongodb.MongoDatabaseFactory;
import org.springframework.data.mongodb.MongoTransactionManager;
import org.springframework.data.mongodb.core.CollectionOptions;
import org.springframework.data.mongodb.core.MongoExceptionTranslator;
import org.springframework.data.mongodb.core.MongoTemplate;
import org.springframework.data.mongodb.core.SimpleMongoClientDatabaseFactory;
import org.springframework.data.mongodb.core.index.IndexResolver;
import org.springframework.data.mongodb.core.index.Indexed;
import org.springframework.data.mongodb.core.messaging.ChangeStreamRequest;
import org.springframework.data.mongodb.core.messaging.DefaultMessageListenerContainer;
import org.springframework.data.mongodb.core.messaging.Subscription;
import org.springframework.data.mongodb.core.query.Criteria;
import org.springframework.data.mongodb.core.query.Query;
import org.springframework.data.mongodb.core.query.Update;
import org.springframework.data.mongodb.repository.MongoRepository;
import org.springframework.data.mongodb.repository.config.EnableMongoRepositories;
import org.springframework.resilience.annotation.EnableResilientMethods;
import org.springframework.resilience.annotation.Retryable;
import org.springframework.resilience.retry.MethodRetryPredicate;
import org.springframework.transaction.annotation.EnableTransactionManagement;
import org.springframework.transaction.annotation.Transactional;
import org.springframework.transaction.support.TransactionTemplate;

/** Spring Data on a replica set: {@code @Transactional} over two collections, again after a conflict, and listeners to changes. */
public final class Spring {
    public record Account(@Id String id, int balance) {}

    public record Line(@Id String id, int amount) {}

    @org.springframework.data.mongodb.core.mapping.Document
    public record Code(@Id String id, @Indexed(expireAfter = "0s") Instant until) {}

    public interface Accounts extends MongoRepository<Account, String> {}

    public interface Lines extends MongoRepository<Line, String> {
        List<Line> findByAmountGreaterThan(int amount);
    }

    /** Says yes to what the server has labelled TransientTransactionError. */
    public static final class Transient implements MethodRetryPredicate {
        @Override
        public boolean shouldRetry(Method method, Throwable thrown) {
            return thrown instanceof Exception e && new MongoExceptionTranslator().isTransientFailure(e);
        }
    }

    @Configuration
    @EnableTransactionManagement
    @EnableResilientMethods
    @EnableMongoRepositories(considerNestedRepositories = true)
    public static class Config {
        @Bean(destroyMethod = "close")
        MongoClient client() {
            return MongoClients.create(System.getenv("EBB_URI"));
        }

        @Bean
        MongoDatabaseFactory factory(MongoClient client) {
            return new SimpleMongoClientDatabaseFactory(client, "e2e_spring");
        }

        @Bean
        MongoTransactionManager transactionManager(MongoDatabaseFactory factory) {
            return new MongoTransactionManager(factory);
        }

        @Bean
        MongoTemplate mongoTemplate(MongoDatabaseFactory factory) {
            return new MongoTemplate(factory);
        }

        @Bean
        Bank bank(MongoTemplate template, Accounts accounts, Lines lines) {
            return new Bank(template, accounts, lines);
        }
    }

    /** What an application would have. */
    public static class Bank {
        private final MongoTemplate template;
        private final Accounts accounts;
        private final Lines lines;

        Bank(MongoTemplate template, Accounts accounts, Lines lines) {
            this.template = template;
            this.accounts = accounts;
            this.lines = lines;
        }

        /** Moves money by a template and by repositories, and is refused when the account is overdrawn then. */
        @Transactional(label = {"mongo:readConcern=snapshot", "mongo:writeConcern=majority"})
        public void move(String line, int amount) {
            template.updateFirst(account("a"), new Update().inc("balance", -amount), Account.class);
            lines.insert(new Line(line, amount));
            template.updateFirst(account("b"), new Update().inc("balance", amount), Account.class);
            if (accounts.findById("a").orElseThrow().balance() < 0) {
                throw new IllegalStateException("overdrawn");
            }
        }

        /** Writes what it has read, changed; between is what another does meanwhile. */
        @Retryable(predicate = Transient.class, maxRetries = 20, delay = 5, jitter = 5)
        @Transactional
        public void change(int factor, int add, Runnable between) {
            Account was = accounts.findById("a").orElseThrow();
            between.run();
            accounts.save(new Account("a", was.balance() * factor + add));
        }

        @Transactional(readOnly = true)
        public int total(Runnable between) {
            int a = accounts.findById("a").orElseThrow().balance();
            between.run();
            return a + accounts.findById("b").orElseThrow().balance();
        }
    }

    private final AnnotationConfigApplicationContext context;
    private final MongoTemplate template;
    private final Accounts accounts;
    private final Lines lines;
    private final Bank bank;

    private Spring(AnnotationConfigApplicationContext context) {
        this.context = context;
        this.template = context.getBean(MongoTemplate.class);
        this.accounts = context.getBean(Accounts.class);
        this.lines = context.getBean(Lines.class);
        this.bank = context.getBean(Bank.class);
    }

    public static void main(String[] args) {
        Checks checks = new Checks();
        try (AnnotationConfigApplicationContext context = new AnnotationConfigApplicationContext(Config.class)) {
            Spring spring = new Spring(context);
            spring.accounts.saveAll(List.of(new Account("a", 10), new Account("b", 0)));
            checks.check("@Transactional over two collections", spring::commits);
            checks.check("an exception takes everything back", spring::rollsBack);
            checks.check("a conflict is transient, and the method called again", spring::retries);
            checks.check("ten at once", spring::atOnce);
            checks.check("a transaction that reads sees one moment", spring::readsOneMoment);
            checks.check("a TransactionTemplate", spring::byTemplate);
            checks.check("a listener hears of a transaction, and of what expires", spring::listens);
        }
        checks.done();
    }

    private static Query account(String id) {
        return Query.query(Criteria.where("_id").is(id));
    }

    private List<Integer> balances() {
        return List.of(accounts.findById("a").orElseThrow().balance(), accounts.findById("b").orElseThrow().balance());
    }

    private void commits() {
        bank.move("first", 5);
        same(balances(), List.of(5, 5));
        same(lines.findByAmountGreaterThan(0), List.of(new Line("first", 5)));
    }

    private void rollsBack() throws Exception {
        fails(IllegalStateException.class, () -> bank.move("second", 6));
        fails(DuplicateKeyException.class, () -> bank.move("first", 1)); // the server aborts it
        same(balances(), List.of(5, 5));
        same(lines.findAll(), List.of(new Line("first", 5)));
    }

    private static void fails(Class<? extends Exception> how, Checks.Body body) throws Exception {
        try {
            body.run();
        } catch (Exception e) {
            holds(how.isInstance(e), "another exception: " + e);
            return;
        }
        throw new AssertionError("no exception, but " + how + " was expected");
    }

    private void retries() {
        AtomicInteger tries = new AtomicInteger();
        bank.change(2, 0, () -> {
            if (tries.incrementAndGet() <= 2) {
                elsewhere(() -> template.updateFirst(account("a"), new Update().inc("balance", 1), Account.class));
            }
        });
        same(List.of(tries.get(), balances()), List.of(3, List.of(14, 5)));
    }

    /** Runs it in a thread, and so in a session, of its own. */
    private static void elsewhere(Runnable body) {
        CompletableFuture.runAsync(body).orTimeout(30, TimeUnit.SECONDS).join();
    }

    private void atOnce() throws InterruptedException {
        Queue<Throwable> errors = new ConcurrentLinkedQueue<>();
        List<Thread> threads = new ArrayList<>(IntStream.range(0, 10).mapToObj(i -> new Thread(() -> {
            try {
                bank.change(1, 1, () -> {});
            } catch (RuntimeException e) {
                errors.add(e);
            }
        })).toList());
        threads.forEach(Thread::start);
        for (Thread thread : threads) {
            thread.join();
        }
        same(List.copyOf(errors), List.of());
        same(balances(), List.of(24, 5));
    }

    private void readsOneMoment() {
        same(bank.total(() -> elsewhere(() -> bank.move("meanwhile", 4))), 29);
        same(balances(), List.of(20, 9));
    }

    private void byTemplate() {
        TransactionTemplate transaction = new TransactionTemplate(context.getBean(MongoTransactionManager.class));
        transaction.executeWithoutResult(status -> {
            accounts.deleteById("b");
            same(accounts.count(), 1L);
            status.setRollbackOnly();
        });
        same(accounts.count(), 2L);
        String name = transaction.execute(status -> lines.insert(new Line("template", 1)).id());
        same(lines.existsById(name), true);
    }

    private void listens() throws Exception {
        template.createCollection(Code.class, CollectionOptions.emitChangedRevisions());
        IndexResolver.create(template.getConverter().getMappingContext()).resolveIndexFor(Code.class).forEach(template.indexOps(Code.class)::createIndex);
        Queue<List<Object>> heard = new ConcurrentLinkedQueue<>();
        DefaultMessageListenerContainer container = new DefaultMessageListenerContainer(template);
        container.start();
        try {
            Subscription subscription = container.register(ChangeStreamRequest.<Code>builder(message -> {
                Code code = message.getRaw().getOperationType() == OperationType.DELETE ? message.getBodyBeforeChange() : message.getBody();
                heard.add(List.of(message.getRaw().getOperationType(), code));
            }).collection(template.getCollectionName(Code.class)).fullDocumentBeforeChangeLookup(FullDocumentBeforeChange.WHEN_AVAILABLE).build(), Code.class);
            holds(subscription.await(Duration.ofSeconds(30)), "the listener listens");
            Code soon = new Code("soon", Instant.ofEpochMilli(System.currentTimeMillis() + 1000));
            Code late = new Code("late", Instant.ofEpochMilli(System.currentTimeMillis() + 3_600_000));
            new TransactionTemplate(context.getBean(MongoTransactionManager.class)).executeWithoutResult(status -> template.insertAll(List.of(soon, late)));
            eventually(1000 + 2 * RECLAIM_MILLIS, "three changes are heard of", () -> heard.size() >= 3);
            same(List.copyOf(heard), List.of(List.of(OperationType.INSERT, soon), List.of(OperationType.INSERT, late), List.of(OperationType.DELETE, soon)));
        } finally {
            container.stop();
        }
        same(template.findAll(Document.class, template.getCollectionName(Code.class)).size(), 1);
    }
}
