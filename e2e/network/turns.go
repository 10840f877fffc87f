package network

// Making a network, or taking a cable out, is a change of this machine's network, upon which a browser gives up what it is loading
// (net::ERR_NETWORK_CHANGED). So tests that do the one and tests that have the other take turns, over all processes.

// Still returns when nobody has a network here, and keeps everybody from making one until release is called.
func Still() (release func(), err error) { return takeTurn(shared) }
