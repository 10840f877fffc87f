//go:build linux

package host

import "testing"

func TestThisMachine(t *testing.T) {
	m := Look()
	if m.Cores < 1 || m.Physical < 1 || m.Sockets < 1 || m.NumaNodes < 1 || m.MemoryBytes <= 0 || m.MemoryLimit <= 0 || m.MemoryLimit > m.MemoryBytes ||
		m.Name == "" || m.Kernel == "" || m.PageBytes <= 0 || m.MaxOpenFiles <= 0 {
		t.Errorf("%+v", m)
	}
	u := Used()
	if u.ResidentBytes <= 0 || u.VirtualBytes < u.ResidentBytes || u.Threads < 1 || u.MaxResidentKB <= 0 {
		t.Errorf("%+v", u)
	}
}

func TestProcessors(t *testing.T) {
	m := Machine{Sockets: 1, Physical: 9}
	m.cpus("processor\t: 0\nmodel name\t: Some CPU\ncpu MHz\t\t: 2400.000\nphysical id\t: 0\ncore id\t\t: 0\nflags\t\t: fpu vme\n\n" +
		"processor\t: 1\nphysical id\t: 0\ncore id\t\t: 0\n\nprocessor\t: 2\nphysical id\t: 1\ncore id\t\t: 0\n")
	if m.CPU != "Some CPU" || m.CPUMHz != "2400.000" || m.CPUFeatures != "fpu vme" || m.Sockets != 2 || m.Physical != 2 {
		t.Errorf("%+v", m)
	}
	m = Machine{Sockets: 1, Physical: 9}
	if m.cpus(""); m.Sockets != 1 || m.Physical != 9 {
		t.Errorf("%+v", m)
	}
}

func TestDistribution(t *testing.T) {
	var m Machine
	m.distribution("NAME=\"Debian GNU/Linux\"\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\nVERSION_ID='12'\n")
	if m.OSName != "Debian GNU/Linux 12 (bookworm)" || m.OSVersion != "12" {
		t.Errorf("%+v", m)
	}
	m.distribution("NAME=Alpine\n")
	if m.OSName != "Alpine" || m.OSVersion != "" {
		t.Errorf("%+v", m)
	}
}

func TestFilesThatAreNotThere(t *testing.T) {
	if read("/no/such/file") != "" || limit("/no/such/file") != 0 || kilobytes("MemFree: 1 kB\n", "MemTotal") != 0 || threads("") != 0 || number("max") != 0 {
		t.Error("found something in nothing")
	}
}
