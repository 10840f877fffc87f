// Package replset is the replica set as its member sees it: the configuration, and what the member is in it (primary,
// secondary), since which election, and for how long it may not be elected. A set has one member here. The package knows
// neither commands nor what is replicated.
package replset
