//go:build linux

package host

import (
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// maxFileBytes is how much of one of the system's files is looked at.
const maxFileBytes = 1 << 20

func (m *Machine) look() {
	m.OSType = "Linux"
	m.cpus(read("/proc/cpuinfo"))
	m.distribution(read("/etc/os-release"))
	m.MemoryBytes = kilobytes(read("/proc/meminfo"), "MemTotal")
	m.MemoryLimit = cgroupMemory("")
	m.KernelVersion = strings.TrimSpace(read("/proc/version"))
	m.Kernel = strings.TrimSpace(read("/proc/sys/kernel/osrelease"))
	if nodes, _ := filepath.Glob("/sys/devices/system/node/node[0-9]*"); len(nodes) > 0 {
		m.NumaNodes = len(nodes)
	}
	var files syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files) == nil {
		m.MaxOpenFiles = int64(min(files.Cur, math.MaxInt64))
	}
}

// read is the text of a file, "" when it cannot be read.
func read(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	var text strings.Builder
	buf := make([]byte, 16<<10) // files of /proc have no size to ask for
	for text.Len() < maxFileBytes {
		n, err := f.Read(buf)
		text.Write(buf[:n])
		if err != nil {
			break
		}
	}
	return text.String()
}

// cpus reads /proc/cpuinfo: one paragraph a processor.
func (m *Machine) cpus(text string) {
	sockets, cores := map[string]bool{}, map[string]bool{}
	socket := ""
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		switch strings.TrimSpace(key) {
		case "model name":
			m.CPU = value
		case "cpu MHz":
			m.CPUMHz = value
		case "flags", "Features":
			m.CPUFeatures = value
		case "physical id":
			socket = value
			sockets[socket] = true
		case "core id":
			cores[socket+"/"+value] = true
		}
	}
	if len(sockets) > 0 {
		m.Sockets = len(sockets)
	}
	if len(cores) > 0 {
		m.Physical = len(cores)
	}
}

// distribution reads os-release: NAME="value" lines.
func (m *Machine) distribution(text string) {
	fields := map[string]string{}
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		fields[key] = strings.Trim(value, `"'`)
	}
	m.OSName = fields["PRETTY_NAME"]
	if m.OSName == "" {
		m.OSName = fields["NAME"]
	}
	m.OSVersion = fields["VERSION_ID"]
}

// kilobytes finds "name:   123 kB" and returns the bytes.
func kilobytes(text, name string) int64 {
	for line := range strings.Lines(text) {
		if key, value, ok := strings.Cut(line, ":"); ok && key == name {
			return number(strings.TrimSuffix(strings.TrimSpace(value), " kB")) * 1024
		}
	}
	return 0
}

// limit is the first number that one of the files has; "max" and no file mean none.
func limit(paths ...string) int64 {
	for _, path := range paths {
		if n := number(strings.TrimSpace(read(path))); n > 0 {
			return n
		}
	}
	return 0
}

func number(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// Used is what the process has used until now.
func Used() Usage {
	status := read("/proc/self/status")
	u := Usage{ResidentBytes: kilobytes(status, "VmRSS"), VirtualBytes: kilobytes(status, "VmSize"), Threads: threads(status)}
	var r syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &r) != nil {
		return u
	}
	u.UserMicros = int64(r.Utime.Sec)*1e6 + int64(r.Utime.Usec)
	u.SystemMicros = int64(r.Stime.Sec)*1e6 + int64(r.Stime.Usec)
	u.MaxResidentKB = int64(r.Maxrss)
	u.InputBlocks, u.OutputBlocks = int64(r.Inblock), int64(r.Oublock)
	u.PageReclaims, u.PageFaults = int64(r.Minflt), int64(r.Majflt)
	u.VoluntarySwitches, u.ForcedSwitches = int64(r.Nvcsw), int64(r.Nivcsw)
	return u
}

// Resident is how many bytes of memory the process has now. It is cheap enough to be asked often.
func Resident() int64 {
	fields := strings.Fields(read("/proc/self/statm"))
	if len(fields) < 2 {
		return 0
	}
	return number(fields[1]) * int64(syscall.Getpagesize())
}

// ResidentOf is how many bytes of memory of its own another process has now, without those of files, which it may share with
// this one. It is 0 where the process is no more.
func ResidentOf(pid int) int64 {
	fields := strings.Fields(read("/proc/" + strconv.Itoa(pid) + "/statm"))
	if len(fields) < 3 {
		return 0
	}
	return (number(fields[1]) - number(fields[2])) * int64(syscall.Getpagesize())
}

func threads(status string) int64 {
	for line := range strings.Lines(status) {
		if value, ok := strings.CutPrefix(line, "Threads:"); ok {
			return number(strings.TrimSpace(value))
		}
	}
	return 0
}
