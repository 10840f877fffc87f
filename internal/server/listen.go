package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
)

// maxAddresses bounds the addresses a server listens on.
const maxAddresses = 64

// ListenAll opens a listener for each address, all on the same port; port 0 takes one that the system has free. It is for all doors: hosts are as in
// bindIp.
func ListenAll(ctx context.Context, hosts []string, port int) ([]net.Listener, error) {
	if len(hosts) == 0 { // of a server that listens on sockets alone
		return nil, nil
	}
	addresses, err := resolve(ctx, hosts)
	if err != nil {
		return nil, err
	}
	var listeners []net.Listener
	for _, ip := range addresses {
		l, err := listen(ctx, ip, port)
		if err != nil {
			for _, open := range listeners {
				open.Close()
			}
			return nil, err
		}
		listeners = append(listeners, l)
		port = l.Addr().(*net.TCPAddr).Port
	}
	return listeners, nil
}

func listen(ctx context.Context, ip string, port int) (net.Listener, error) {
	network := "tcp4" // 0.0.0.0 must not take the IPv6 side along
	if net.ParseIP(ip).To4() == nil {
		network = "tcp6"
	}
	address := net.JoinHostPort(ip, strconv.Itoa(port))
	var config net.ListenConfig
	l, err := config.Listen(ctx, network, address)
	if err != nil {
		var cause *net.OpError
		if errors.As(err, &cause) {
			err = cause.Err // its text says the address a second time
		}
		return nil, fmt.Errorf("failed to set up listener on %s: %w", address, err)
	}
	return l, nil
}

// resolve turns bindIp's entries into addresses. A name stands for its IPv4 addresses, "*" for every IPv4 interface.
func resolve(ctx context.Context, hosts []string) ([]string, error) {
	var addresses []string
	seen := map[string]bool{}
	for _, host := range hosts {
		ips, err := lookUp(ctx, host)
		if err != nil {
			return nil, err
		}
		for _, ip := range ips {
			if !seen[ip] {
				seen[ip] = true
				addresses = append(addresses, ip)
			}
		}
	}
	if len(addresses) == 0 || len(addresses) > maxAddresses {
		return nil, fmt.Errorf("bindIp names %d addresses; it must name between 1 and %d", len(addresses), maxAddresses)
	}
	return addresses, nil
}

func lookUp(ctx context.Context, host string) ([]string, error) {
	switch {
	case host == "*":
		return []string{"0.0.0.0"}, nil
	case net.ParseIP(host) != nil:
		return []string{host}, nil
	}
	ips, err := net.DefaultResolver.LookupIP(ctx, "ip4", host)
	if err != nil {
		return nil, fmt.Errorf("failed to set up listener on %q: %w", host, err)
	}
	var out []string
	for _, ip := range ips {
		out = append(out, ip.String())
	}
	return out, nil
}
