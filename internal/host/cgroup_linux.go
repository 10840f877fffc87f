package host

import (
	"math"
	"path"
	"strings"
)

const (
	// maxCgroupDepth bounds how many groups above the process's own are looked at.
	maxCgroupDepth = 64
	// noLimit is from where on a number of version 1 means that there is no limit: it is what fits a page count.
	noLimit = math.MaxInt64 / 4096 * 4096 / 2
)

// cgroupMemory is how many bytes the control groups leave to the process, 0 for no limit: the least that its own group or
// one above allows, for each bounds all below. root is "" but in a test.
//
// Version 2 has memory.max, which ends processes, and memory.high, which slows them to a crawl; version 1 has
// memory.limit_in_bytes. Where both are mounted only one of them has the memory.
func cgroupMemory(root string) int64 {
	least := int64(0)
	mounts := read(root + "/proc/self/mountinfo")
	for line := range strings.Lines(read(root + "/proc/self/cgroup")) {
		fields := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(fields) != 3 {
			continue
		}
		kind, files := "cgroup2", []string{"memory.max", "memory.high"}
		if fields[1] != "" {
			if !listed(fields[1], "memory") {
				continue
			}
			kind, files = "cgroup", []string{"memory.limit_in_bytes"}
		}
		mount, top := cgroupMount(mounts, kind)
		if mount == "" {
			continue
		}
		group := below(fields[2], top)
		for range maxCgroupDepth {
			for _, file := range files {
				if n := limit(path.Join(root+mount, group, file)); n > 0 && n < noLimit && (least == 0 || n < least) {
					least = n
				}
			}
			if group == "/" {
				break
			}
			group = path.Dir(group)
		}
	}
	return least
}

// cgroupMount is where the hierarchy is mounted, and which of its groups stands there: in a container it may be the
// container's own. Of several mounts of the same the first is taken.
func cgroupMount(mountinfo, kind string) (mount, top string) {
	for line := range strings.Lines(mountinfo) {
		// 31 23 0:26 /top /mount rw,relatime shared:9 - cgroup cgroup rw,memory
		front, back, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " - ")
		before, after := strings.Fields(front), strings.Fields(back)
		if !ok || len(before) < 5 || len(after) < 3 || after[0] != kind {
			continue
		}
		if kind == "cgroup" && !listed(after[2], "memory") {
			continue
		}
		return unescaped(before[4]), unescaped(before[3])
	}
	return "", ""
}

// below is the group's path under the mount whose root is the group top. What lies elsewhere, as seen from another
// namespace ("/../x"), is taken for the mount's root.
func below(group, top string) string {
	if strings.HasPrefix(group, "/..") || strings.HasPrefix(top, "/..") {
		return "/"
	}
	if top == "/" {
		return path.Clean("/" + group)
	}
	rest, ok := strings.CutPrefix(group, top)
	if !ok || rest != "" && rest[0] != '/' {
		return "/"
	}
	return path.Clean("/" + rest)
}

func listed(list, name string) bool {
	for item := range strings.SplitSeq(list, ",") {
		if item == name {
			return true
		}
	}
	return false
}

// unescaped has the characters back that mountinfo writes in octal.
func unescaped(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}
