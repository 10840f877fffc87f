package testheap

import (
	"runtime"
	"testing"
)

func TestBytes(t *testing.T) {
	const size = 8 << 20
	before := Bytes()
	held := make([]byte, size)
	if took := Bytes() - before; took < size-size/16 || took > size+size/2 { // the test's own runtime lets go of something now and then
		t.Errorf("%d bytes of %d", took, size)
	}
	runtime.KeepAlive(held)
	if left := Bytes() - before; left > size/2 {
		t.Errorf("%d bytes of %d when nothing refers to them", left, size)
	}
}
