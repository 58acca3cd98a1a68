package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"jobledger/cmd/jobledger/internal/logs"
)

// maxPorts is how many ports of a ledger are remembered: the second is for a second server, or for where
// another program has the first.
const maxPorts = 4

// anyPort is the address of --listen, unless it is given.
const anyPort = "127.0.0.1:0"

// listenAgain listens at the port at which this host has served the ledger at path before, so that links to
// its pages stay good, or at a free one. It remembers the port. It also works if ports cannot be remembered.
func (p *program) listenAgain(ctx context.Context, path string,
	listen func(context.Context, string) (net.Listener, error)) (net.Listener, error) {
	host, _, err := net.SplitHostPort(anyPort)
	if err != nil {
		return nil, err
	}
	file := portsFile(path)
	known := readPorts(file)
	for _, port := range known {
		if l, err := listen(ctx, net.JoinHostPort(host, port)); err == nil {
			if port != known[0] {
				p.Message("port %s is in use: this is the one that the ledger had when it was so before", known[0])
			}
			return l, nil
		}
	}
	l, err := listen(ctx, anyPort)
	if err != nil {
		return nil, err
	}
	if len(known) > 0 {
		p.Message("port %s, which the ledger had before, is in use; another one is used instead", known[0])
	}
	if len(known) < maxPorts {
		_, port, _ := net.SplitHostPort(l.Addr().String())
		_ = writePorts(file, append(known, port)) // a link to this port is not good for longer
	}
	return l, nil
}

// portsFile is where this host keeps the ports of the ledger at path; "": nowhere. Hosts may share the
// folder, and have other ledgers at the same path.
func portsFile(path string) string {
	state, err := logs.StateFolder()
	if err != nil {
		return ""
	}
	host, _ := os.Hostname()
	return filepath.Join(state, "serve", fmt.Sprintf("%x.ports", sha256.Sum256([]byte(host+"\n"+path))))
}

// readPorts returns the ports in a file, one a line, the first one in front. What cannot be read is not
// there.
func readPorts(file string) (ports []string) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		n, err := strconv.ParseUint(line, 10, 16)
		if err == nil && n > 0 && !slices.Contains(ports, line) && len(ports) < maxPorts {
			ports = append(ports, line)
		}
	}
	return ports
}

// writePorts replaces the content of the file in one step.
func writePorts(file string, ports []string) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(file), ".new-*") // 0600
	if err != nil {
		return err
	}
	_, err = f.WriteString(strings.Join(ports, "\n") + "\n")
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), file)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
