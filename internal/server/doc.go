// Package server owns the listeners and the connections: it reads one message after the other from a client, has it
// handled and writes the reply. It must not know what a command does; of their names it knows those that open a
// connection, because the protocol treats them apart.
//
// # A connection's life
//
// Serve accepts a socket and gives it a goroutine of its own, which reads a message, calls the Handler, writes the reply
// and starts again. So replies keep the order of requests, and a slow or stuck client holds up nobody but itself.
//
// While an operation runs nobody reads from its socket. One goroutine for the whole server looks every watchInterval
// for operations that run since the look before, and starts a watch for each: a goroutine that waits, without taking
// bytes away, until the peer hangs up. Quick operations never see one. The connection's goroutine ends the watch before
// it reads again.
//
// # What messages may take
//
// A connection has a small buffer of its own. What a message takes beyond that, decompressed, comes out of a budget of all
// connections: a message is let in as a whole or waits, so nobody waits while holding a part. Replies are charged without
// waiting, for they are there already, and hold further messages up. Who holds memory must go on: a client that sends or
// reads too little for stallTimeout is closed, seen by the same goroutine that starts watches.
//
// Invariants: a Conn is used by its own goroutine, but for what its watch guards. Whoever starts a goroutine waits for
// it: a connection for its watch, Serve for its connections. No lock is held across I/O or Handle.
package server
