// Package network makes machines out of network namespaces, on one bridge, so that tests can cut servers off from one another. It does not know
// what runs on them.
package network

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Network is a bridge that each machine has a cable to. This process is on it too, at an address of its own. All addresses are 10.213.n.i, of a net
// that nobody else has.
type Network struct {
	Machines []*Machine

	prefix, bridge, net string
	release             func() // its turn
}

// Machine is a namespace.
type Machine struct {
	network *Network
	index   int
	space   string
	link    string // its end of the cable on the bridge
}

const (
	// networks is how many there can be at once, and maxMachines is how many machines each has at most.
	networks    = 200
	maxMachines = 250
)

// New makes a network, as soon as nobody else has one, nor needs that there is none (Still). The error is that of the kernel where it does not let this
// process do that.
func New(machines int) (n *Network, err error) {
	if machines > maxMachines {
		return nil, fmt.Errorf("a network has %d machines at most, not %d", maxMachines, machines)
	}
	release, err := takeTurn(alone)
	if err != nil {
		return nil, err
	}
	id, err := free()
	if err != nil {
		release()
		return nil, err
	}
	n = &Network{prefix: fmt.Sprintf("ebb%d", id), net: fmt.Sprintf("10.213.%d", id), release: release}
	n.bridge = n.prefix + "br"
	if err := n.build(machines); err != nil {
		return nil, errors.Join(err, n.Close())
	}
	return n, nil
}

func (n *Network) build(machines int) error {
	if err := all(
		[]string{"ip", "link", "add", n.bridge, "type", "bridge"},
		[]string{"ip", "addr", "add", n.net + ".254/24", "dev", n.bridge},
		[]string{"ip", "link", "set", n.bridge, "address", n.mac(maxMachines), "up"},
	); err != nil {
		return err
	}
	for i := range machines {
		m := &Machine{network: n, index: i, space: fmt.Sprintf("%sn%d", n.prefix, i), link: fmt.Sprintf("%sv%d", n.prefix, i)}
		n.Machines = append(n.Machines, m)
		inside := m.link + "i"
		if err := all(
			[]string{"ip", "netns", "add", m.space},
			[]string{"ip", "link", "add", m.link, "type", "veth", "peer", "name", inside, "address", n.mac(i)},
			[]string{"ip", "link", "set", inside, "netns", m.space},
			[]string{"ip", "link", "set", m.link, "master", n.bridge, "up"},
			[]string{"ip", "-n", m.space, "addr", "add", m.Address() + "/24", "dev", inside},
			[]string{"ip", "-n", m.space, "link", "set", inside, "up"},
			[]string{"ip", "-n", m.space, "link", "set", "lo", "up"},
		); err != nil {
			return err
		}
	}
	return n.introduce()
}

// mac is a hardware address for a machine; that of the bridge has the number behind the last one.
func (n *Network) mac(machine int) string { return fmt.Sprintf("02:eb:bb:00:00:%02x", machine) }

// introduce has all know one another's hardware addresses for good: otherwise the kernel would soon tell who sends that a machine that is lost is not there,
// as no router does.
func (n *Network) introduce() (err error) {
	for _, m := range n.Machines {
		err = errors.Join(err, run("ip", "neigh", "add", m.Address(), "lladdr", n.mac(m.index), "dev", n.bridge, "nud", "permanent"),
			run("ip", "-n", m.space, "neigh", "add", n.net+".254", "lladdr", n.mac(maxMachines), "dev", m.link+"i", "nud", "permanent"))
		for _, other := range n.Machines {
			if other != m {
				err = errors.Join(err, run("ip", "-n", m.space, "neigh", "add", other.Address(), "lladdr", n.mac(other.index), "dev", m.link+"i", "nud", "permanent"))
			}
		}
	}
	return err
}

// free is the number of a network that nobody has, nor has left behind.
func free() (int, error) {
	for i := range networks {
		id := (os.Getpid() + i) % networks
		links, err := filepath.Glob(fmt.Sprintf("/sys/class/net/ebb%d[bv]*", id))
		spaces, err2 := filepath.Glob(fmt.Sprintf("/run/netns/ebb%dn*", id))
		if err := errors.Join(err, err2); err != nil {
			return 0, err
		}
		if len(links)+len(spaces) == 0 {
			return id, nil
		}
	}
	return 0, errors.New("all networks are taken")
}

// Close removes the network. What runs on its machines has to have ended.
func (n *Network) Close() (err error) {
	defer n.release()
	for _, m := range n.Machines {
		// The cable by itself: that of a namespace goes some time after it.
		err = errors.Join(err, run("ip", "link", "del", m.link), run("ip", "netns", "del", m.space))
	}
	return errors.Join(err, run("ip", "link", "del", n.bridge))
}

// Address is the machine's.
func (m *Machine) Address() string { return fmt.Sprintf("%s.%d", m.network.net, m.index+1) }

// Prefix is what a command that is to run on the machine begins with. It becomes that command, with its process.
func (m *Machine) Prefix() []string { return []string{"ip", "netns", "exec", m.space} }

// Cut takes the cable out; from all, this process too. Join puts it in again.
func (m *Machine) Cut() error { return run("ip", "link", "set", m.link, "down") }

// Join is the inverse of Cut.
func (m *Machine) Join() error { return run("ip", "link", "set", m.link, "up") }

// Lose has whatever is sent to the machine, or by it, disappear, and nobody is told; Find ends that. What was sent meanwhile is tried again by the kernel, less
// and less often.
func (m *Machine) Lose() error { return run("ip", "link", "set", m.link, "nomaster") }

// Find is the inverse of Lose.
func (m *Machine) Find() error { return run("ip", "link", "set", m.link, "master", m.network.bridge) }

// Part has the machine reach those others no more, nor they it, since it does not answer them. All else goes on. Meet ends that.
func (m *Machine) Part(others ...*Machine) error { return m.routes("add", others) }

// Meet is the inverse of Part.
func (m *Machine) Meet(others ...*Machine) error { return m.routes("del", others) }

func (m *Machine) routes(verb string, others []*Machine) (err error) {
	for _, other := range others {
		if other != m {
			err = errors.Join(err, run("ip", "-n", m.space, "route", verb, "blackhole", other.Address()+"/32"))
		}
	}
	return err
}

// all runs commands until one fails.
func all(commands ...[]string) error {
	for _, c := range commands {
		if err := run(c...); err != nil {
			return err
		}
	}
	return nil
}

func run(command ...string) error {
	out, err := exec.Command(command[0], command[1:]...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%v: %w: %s", command, err, out)
	}
	return nil
}
