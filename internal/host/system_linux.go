package host

func measure() System {
	return System{CPU: cpuFigures(read("/proc/stat")), Memory: memoryFigures(read("/proc/meminfo"))}
}
