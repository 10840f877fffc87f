// Package router hands the requests of clients on to the server that works on the data, where several servers have one place for it and one of
// them at a time works there. It knows nothing of what requests mean, but for what two servers say to each other and what must not be handed on.
//
// Each connection of a client has one of its own to that server, so all that belongs to a connection lies there: who has logged in, what it
// has agreed about, an answer that is to come. When that server is another one, or is not reached any more, that connection ends, and who has the
// client's decides whether the client can go on without what was there: nobody knows what has become of a request that was on its way. Who has not
// begun yet waits.
//
// Nothing here decides who works on the data. A router that is wrong about it meets a server that says so (NotWritablePrimary), or one that cannot
// read or write.
package router
