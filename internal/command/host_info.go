package command

import (
	"net"
	"strconv"

	"github.com/ebbdb/ebb/internal/auth/privilege"
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/host"
)

func hostInfoCommands() []*Command {
	return []*Command{
		{Name: "hostInfo", Needs: Needs{OnCluster: actions(privilege.HostInfo)}, Doc: "Says what machine the server runs on.", Run: hostInfo},
	}
}

// theMachine is looked at once: what it says does not change.
func (s *Server) theMachine() *host.Machine {
	s.machine.Do(func() { s.host = host.Look() })
	return &s.host
}

func hostInfo(op *Op) (bson.Doc, error) {
	if err := op.noArguments(); err != nil {
		return nil, err
	}
	m := op.theMachine()
	b := bson.Build()
	b.Object("system").Date("currentTime", op.Now).String("hostname", op.hostname()).Int32("cpuAddrSize", strconv.IntSize).
		Int64("memSizeMB", m.MemoryBytes>>20).Int64("memLimitMB", m.MemoryLimit>>20).
		Int32("numCores", int32(m.Cores)).Int32("numCoresAvailableToProcess", int32(m.Available)).
		Int32("numPhysicalCores", int32(m.Physical)).Int32("numCpuSockets", int32(m.Sockets)).
		String("cpuArch", m.Arch).Bool("numaEnabled", m.NumaNodes > 1).Int32("numNumaNodes", int32(m.NumaNodes)).End()
	b.Object("os").String("type", m.OSType).String("name", m.OSName).String("version", m.OSVersion).End()
	b.Object("extra").String("versionString", m.KernelVersion).String("libcVersion", "").String("versionSignature", "").
		String("kernelVersion", m.Kernel).String("cpuString", m.CPU).String("cpuFrequencyMHz", m.CPUMHz).
		String("cpuFeatures", m.CPUFeatures).Int64("pageSize", m.PageBytes)
	if m.PageBytes > 0 {
		b.Int64("numPages", m.MemoryBytes/m.PageBytes)
	}
	return b.Int64("maxOpenFiles", m.MaxOpenFiles).End().Doc(), nil
}

// hostAndPort is the machine's name with the server's port.
func (s *Server) hostAndPort() string {
	if s.Port == 0 {
		return s.theMachine().Name
	}
	return net.JoinHostPort(s.theMachine().Name, strconv.Itoa(s.Port))
}

// hostname is the machine's name, with the port that the client came in by unless it is the usual one.
func (op *Op) hostname() string {
	name := op.theMachine().Name
	if port := portOf(op.Conn.Local); port != "" && port != "27017" {
		name += ":" + port
	}
	return name
}
