// Package server owns the listeners and the connections: it reads one message after the other from a client, has it
// handled and writes the reply. It must not know what a command does; of their names it knows those that open a
// connection, because the protocol treats them apart.
//
// # A connection's life
//
// Serve accepts a socket and gives it a goroutine of its own, which reads a message, calls the Handler, writes the reply
// and starts again. So replies keep the order of requests, and a slow or stuck client holds up nobody but itself.
//
// Where a socket is attentive, the loop runs inside one long read of it, so that a message costs one system call to read, not
// another one that finds nothing. What does not arrive as a whole is read outside of it.
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
// Invariants: a Conn is used by its own goroutine, but for what its watch and its transfer tell. Whoever starts a goroutine
// waits for it: Serve for its connections. No lock is held across I/O or Handle, but the net package's on the socket's
// reading side: nobody else reads from a socket, and only its own goroutine closes it.
package server
