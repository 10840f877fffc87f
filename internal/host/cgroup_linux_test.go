package host

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCgroupMemory has machines as trees of files, and the limit that a process there is under.
func TestCgroupMemory(t *testing.T) {
	const (
		v1 = "30 23 0:25 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu\n31 23 0:26 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory\n"
		v2 = "24 23 0:21 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
	)
	for name, c := range map[string]struct {
		files map[string]string
		want  int64
	}{
		"none": {nil, 0},
		"v2, the root": {map[string]string{"proc/self/cgroup": "0::/\n", "proc/self/mountinfo": v2,
			"sys/fs/cgroup/memory.max": "1000\n"}, 1000},
		"v2, no limit": {map[string]string{"proc/self/cgroup": "0::/a\n", "proc/self/mountinfo": v2,
			"sys/fs/cgroup/a/memory.max": "max\n"}, 0},
		"v2, its own": {map[string]string{"proc/self/cgroup": "0::/system.slice/ebb.service\n", "proc/self/mountinfo": v2,
			"sys/fs/cgroup/system.slice/ebb.service/memory.max": "2147483648\n", "sys/fs/cgroup/system.slice/memory.max": "max\n"}, 1 << 31},
		"v2, one above": {map[string]string{"proc/self/cgroup": "0::/a/b/c\n", "proc/self/mountinfo": v2,
			"sys/fs/cgroup/a/b/c/memory.max": "9000\n", "sys/fs/cgroup/a/b/memory.max": "max\n", "sys/fs/cgroup/a/memory.max": "5000\n"}, 5000},
		"v2, high": {map[string]string{"proc/self/cgroup": "0::/a\n", "proc/self/mountinfo": v2,
			"sys/fs/cgroup/a/memory.max": "9000\n", "sys/fs/cgroup/a/memory.high": "7000\n"}, 7000},
		"v2, a container whose mount is its group": {map[string]string{"proc/self/cgroup": "0::/docker/1234/app\n",
			"proc/self/mountinfo":             "24 23 0:21 /docker/1234 /sys/fs/cgroup ro - cgroup2 cgroup rw\n",
			"sys/fs/cgroup/app/memory.max":    "max\n",
			"sys/fs/cgroup/memory.max":        "4000\n",
			"sys/fs/cgroup/docker/memory.max": "1\n"}, 4000},
		"v2, seen from another namespace": {map[string]string{"proc/self/cgroup": "0::/../../x\n", "proc/self/mountinfo": v2,
			"sys/fs/cgroup/memory.max": "4000\n", "sys/fs/memory.max": "1\n"}, 4000},
		"v1, its own": {map[string]string{"proc/self/cgroup": "5:cpu:/a\n4:memory:/a/b\n0::/\n", "proc/self/mountinfo": v1,
			"sys/fs/cgroup/memory/a/b/memory.limit_in_bytes": "3000\n", "sys/fs/cgroup/memory/a/memory.limit_in_bytes": "9223372036854771712\n"}, 3000},
		"v1, one above": {map[string]string{"proc/self/cgroup": "4:cpu,memory:/a/b\n", "proc/self/mountinfo": strings.Replace(v1, "rw,memory", "rw,cpu,memory", 1),
			"sys/fs/cgroup/memory/a/b/memory.limit_in_bytes": "9223372036854771712\n", "sys/fs/cgroup/memory/a/memory.limit_in_bytes": "2000\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n"}, 2000},
		"v1, no limit": {map[string]string{"proc/self/cgroup": "4:memory:/\n", "proc/self/mountinfo": v1,
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n"}, 0},
		"both, the memory in v1": {map[string]string{"proc/self/cgroup": "4:memory:/a\n0::/\n",
			"proc/self/mountinfo":                          v1 + "40 23 0:30 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
			"sys/fs/cgroup/memory/a/memory.limit_in_bytes": "6000\n"}, 6000},
		"a mount with a blank in its name": {map[string]string{"proc/self/cgroup": "0::/a\n",
			"proc/self/mountinfo": "24 23 0:21 / /my\\040groups rw - cgroup2 cgroup2 rw\n", "my groups/a/memory.max": "800\n"}, 800},
		"damaged": {map[string]string{"proc/self/cgroup": "nonsense\n0:\n4:memory:relative\n", "proc/self/mountinfo": "short - cgroup\n" + v1,
			"sys/fs/cgroup/memory/relative/memory.limit_in_bytes": "x\n"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			for path, text := range c.files {
				path = filepath.Join(root, path)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if got := cgroupMemory(root); got != c.want {
				t.Errorf("%d, not %d", got, c.want)
			}
		})
	}
}
