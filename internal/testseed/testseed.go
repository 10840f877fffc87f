// Package testseed draws the seeds of random tests and says how to run one again. Only tests use it.
package testseed

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
)

// Variable is the variable of the environment that sets the seed of every test that asks for one.
const Variable = "EBB_SEED"

// Of is the seed of a test: another each time, or that of the environment. The test's log has it.
func Of(t testing.TB) uint64 {
	t.Helper()
	seed := rand.Uint64()
	if text := os.Getenv(Variable); text != "" {
		set, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("%s: %v", Variable, err)
		}
		seed = set
	}
	t.Logf("%s=%d go test -run '^%s$'", Variable, seed, t.Name())
	return seed
}
