//go:build race

package javascript

// raced says that the race detector is built in, whose own memory is many times that of the program: what bounds the process
// leaves it alone.
const raced = true
