package ebb

const (
	maxConnections = 1_000_000
	// maxTables is how many tables the store holds open at most, minTables how many it needs. Pebble goes no lower.
	maxTables = 4096
	minTables = 74
	// ownFiles are those that the server itself needs: tables, logs, and what is being written.
	ownFiles = 128
)

// connectionLimit is mongod's: four fifths of the file descriptors that the process may have, at most a million. Where there are
// few, what the store needs comes first.
func connectionLimit(files int) int {
	return max(min(files/5*4, files-ownFiles, maxConnections), 1)
}

// tableLimit is how many tables the store holds open: of the descriptors that connections leave a half, for others are needed beside them.
func tableLimit(files int) int {
	return min(max(files/10, minTables), maxTables)
}
