package host

import (
	"runtime"
	"strconv"
	"strings"
)

// Figure is one measure of the machine, by the name that MongoDB gives it.
type Figure struct {
	Name  string
	Value float64
}

// maxFigures bounds how many figures one file gives.
const maxFigures = 100

// System is what the machine does, all of its processes together. Where the system does not tell there are no figures but the processors.
type System struct{ CPU, Memory []Figure }

// Measure looks at the machine.
func Measure() System {
	s := measure()
	s.CPU = append([]Figure{{"num_cpus", float64(runtime.NumCPU())}}, s.CPU...)
	return s
}

// cpuFigures reads /proc/stat: the first line has ticks, of a hundredth of a second, and others below it counters.
func cpuFigures(text string) (f []Figure) {
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		switch fields[0] {
		case "cpu":
			for i, name := range []string{"user_ms", "nice_ms", "system_ms", "idle_ms", "iowait_ms", "irq_ms", "softirq_ms", "steal_ms", "guest_ms", "guest_nice_ms"} {
				if i+1 < len(fields) {
					f = appendFigure(f, name, fields[i+1], 10)
				}
			}
		case "ctxt", "processes", "procs_running", "procs_blocked":
			f = appendFigure(f, fields[0], fields[1], 1)
		case "btime":
			f = appendFigure(f, fields[0], fields[1], 1000)
		}
	}
	return f
}

// memoryFigures reads /proc/meminfo, of which MongoDB tells these.
func memoryFigures(text string) (f []Figure) {
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(line, ":")
		fields := strings.Fields(value)
		if len(fields) != 2 || fields[1] != "kB" {
			continue
		}
		switch name {
		case "MemTotal", "MemFree", "MemAvailable", "Buffers", "Cached", "SwapCached", "SwapTotal", "SwapFree", "Active", "Inactive", "Active(anon)", "Inactive(anon)",
			"Active(file)", "Inactive(file)", "Dirty":
			f = appendFigure(f, name+"_kb", fields[0], 1)
		}
	}
	return f
}

func appendFigure(f []Figure, name, text string, scale float64) []Figure {
	v, err := strconv.ParseInt(text, 10, 64)
	if err != nil || len(f) == maxFigures {
		return f
	}
	return append(f, Figure{name, float64(v) * scale})
}
