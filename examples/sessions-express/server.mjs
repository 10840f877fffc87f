// Web sessions in Express that end half an hour after they were last used, and at once when somebody logs out.
//
// connect-mongo makes a TTL index on `expires` and lets the database delete what has run out. Here that happens at the moment itself, so
// a session that is over is over, also for those who read the collection by themselves.
//
//   MONGODB_URI=mongodb://127.0.0.1:27017 node server.mjs        # and open http://127.0.0.1:3000

import express from "express";
import session from "express-session";
import MongoStore from "connect-mongo";
import { pathToFileURL } from "node:url";

const uri = process.env.MONGODB_URI ?? "mongodb://127.0.0.1:27017";

export function app({ seconds = 1800 } = {}) {
  const store = MongoStore.create({ mongoUrl: uri, dbName: "example_sessions", collectionName: "sessions", ttl: seconds });
  const app = express();
  app.use(
    session({
      secret: process.env.SESSION_SECRET ?? "an example has no secrets",
      store,
      resave: false, // what has not changed is only touched: its end moves
      saveUninitialized: false,
      rolling: true,
      cookie: { maxAge: seconds * 1000, httpOnly: true, sameSite: "lax" },
    }),
  );
  app.post("/login/:name", (req, res) => {
    req.session.user = req.params.name;
    res.json({ user: req.session.user });
  });
  app.get("/", (req, res) => {
    if (!req.session.user) return res.status(401).json({ error: "log in first" });
    res.json({ user: req.session.user });
  });
  app.post("/logout", (req, res) => req.session.destroy(() => res.json({})));
  return { app, store };
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  app().app.listen(3000, "127.0.0.1", () => console.log("http://127.0.0.1:3000"));
}
