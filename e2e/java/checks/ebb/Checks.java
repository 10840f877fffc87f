package ebb;

import com.mongodb.MongoException;
import java.util.Objects;
import java.util.concurrent.Callable;
import java.util.concurrent.atomic.AtomicInteger;

/** Prints "ok NAME" or "not ok NAME" for each check, and "1..N" at the end. */
final class Checks {
    interface Body {
        void run() throws Exception;
    }

    /** Reclaim follows expiry at once; what is waited for beyond it is a slow machine. */
    static final long RECLAIM_MILLIS = 10_000;

    private final AtomicInteger count = new AtomicInteger();
    private final AtomicInteger failed = new AtomicInteger();

    void check(String name, Body body) {
        count.incrementAndGet();
        try {
            body.run();
            print("ok " + name);
        } catch (Throwable e) {
            failed.incrementAndGet();
            print("not ok " + name + ": " + e);
            e.printStackTrace(System.out);
        }
    }

    /** Ends the program. */
    void done() {
        print("1.." + count.get());
        System.exit(failed.get() == 0 ? 0 : 1);
    }

    private static synchronized void print(String line) {
        System.out.println(line);
    }

    static void same(Object got, Object want) {
        if (!Objects.equals(got, want)) {
            throw new AssertionError("got " + got + ", want " + want);
        }
    }

    static void holds(boolean condition, String what) {
        if (!condition) {
            throw new AssertionError(what);
        }
    }

    /** Wants the call to fail with this code. */
    static MongoException refused(int code, Callable<?> call) throws Exception {
        try {
            call.call();
        } catch (MongoException e) {
            same(e.getCode(), code);
            return e;
        }
        throw new AssertionError("accepted, but " + code + " was expected");
    }

    static void sleepUntil(long moment) throws InterruptedException {
        Thread.sleep(Math.max(0, moment - System.currentTimeMillis()));
    }

    static void eventually(long limitMillis, String what, Callable<Boolean> condition) throws Exception {
        long end = System.currentTimeMillis() + limitMillis;
        while (!condition.call()) {
            holds(System.currentTimeMillis() < end, "not within " + limitMillis + " ms: " + what);
            Thread.sleep(50);
        }
    }
}
