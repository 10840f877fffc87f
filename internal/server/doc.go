// Package server owns the listeners and the connections: it reads one message after the other from a client, has it
// handled and writes the reply. It must not know what a command does; of their names it knows those that open a
// connection, because the protocol treats them apart.
//
// # A connection's life
//
// On Linux a few pollers look after all connections. A poller's lead, one goroutine, waits in the kernel until messages have
// arrived on any of its sockets, and has them handled one after the other, as long as the Handler says that they are quick. Before
// anything that may last (another request, a reply that the socket does not take, memory that is not free) the lead goes to a
// new goroutine, and the old one goes on with its connection alone. A request that was taken for quick and is not loses the lead
// too, after some milliseconds. A large message is read as it arrives, and nobody waits for the rest of it.
//
// A handler may leave its reply pending until a disk has done its part. The connection is then nobody's; once the handler is
// told, one goroutine writes all replies that became due together.
//
// At any time a connection rests, and its poller listens, or has one holder: a goroutine that works on it, or a pending reply.
// What arrives for a connection that is held is left to the kernel; its poller stops listening when it is told of it.
//
// On other systems each connection has a goroutine of its own, which reads a message, calls the Handler, writes the reply and
// starts again. Either way replies keep the order of requests, and a slow or stuck client holds up nobody but itself.
//
// While an operation runs nobody reads from its socket. One goroutine for the whole server looks every watchInterval
// for operations that run since the look before, and asks the system, without taking bytes away, which of their peers
// have hung up. Quick operations are never asked about.
//
// # What messages may take
//
// A connection has a small buffer of its own. What a message takes beyond that, decompressed, comes out of a budget of all
// connections: a message is let in as a whole or waits, so nobody waits while holding a part. Replies are charged without
// waiting, for they are there already, and hold further messages up. Who holds memory must go on: a client that sends or
// reads too little for stallTimeout is closed, seen by the same goroutine that starts watches.
//
// Invariants: a Conn is used by its holder, but for what its watch and its transfer tell, and only its holder closes it. Whoever
// starts a goroutine waits for it: Serve for its connections, a poller for those that lead. No lock is held across I/O or Handle.
package server
