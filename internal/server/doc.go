// Package server owns the listeners and the connections: it reads one message after the other from a client, has it
// handled and writes the reply. It must not know what a command does; of their names it knows those that open a
// connection, because the protocol treats them apart.
//
// # A connection's life
//
// Each connection has one goroutine. It reads a message, calls the Handler, writes the reply and starts again. So replies keep
// the order of requests, nothing is handled before the reply to what came before is written, and a slow or stuck client holds up
// nobody but itself. A handler that waits, for the disk say, simply blocks. All of this needs no more than net.Conn and
// net.Listener: a Unix domain socket is a listener more (socket.go), and TLS begins with the first bytes of a connection (tls.go).
//
// # Clients that hang up
//
// While an operation runs, its goroutine does not read, and only a read tells that the client has gone. One goroutine for the whole
// server looks at all connections every watchInterval. Where it sees an operation for the second time it starts a reader, which
// reads on behind the request into the connection's buffer. An error there ends the operation; what is read is the beginning of
// the next message. When the operation ends first, a read deadline that has passed gets the reader back. Quick operations are
// never watched. A client that sends more than the buffer holds behind its request, and then hangs up, is noticed when the reply
// is written.
//
// # What messages may take
//
// A connection has a small buffer of its own. What a message takes beyond that, decompressed, comes out of a budget of all
// connections: a message is let in as a whole or waits, so nobody waits while holding a part. Replies are charged without
// waiting, for they are there already, and hold further messages up. Who holds memory must go on: a client that sends or
// reads too little for stallTimeout is closed. The goroutine that looks at all connections sees that by counters of bytes, so no
// message needs a deadline.
//
// Invariants: a Conn is used by its goroutine, its Reader by its watch's reader while there is one, and only its goroutine closes
// it; others set deadlines that have passed. Serve waits for every goroutine that it starts. No lock is held across I/O or Handle.
package server
