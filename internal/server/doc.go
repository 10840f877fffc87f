// Package server owns the listeners and the connections: it reads one message after the other from a client, has it
// handled and writes the reply. It must not know any command beyond the names of those that open a connection.
package server
