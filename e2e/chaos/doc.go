// Package chaos has three real processes be a replica set in network namespaces of their own, and clients work with it while members are
// killed, stopped, cut off and out of disk. It is for tests alone.
package chaos
