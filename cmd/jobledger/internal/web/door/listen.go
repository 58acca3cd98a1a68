package door

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"jobledger/cmd/jobledger/internal/buildinfo"
	"jobledger/cmd/jobledger/internal/fault"
	"jobledger/ledger/ownerfile"
)

// unixPrefix begins the address of a Unix socket.
const unixPrefix = "unix:"

// Listen listens at address: HOST:PORT on the loopback interface, where port 0 is a free one, or unix:PATH.
// An address that other hosts can reach is refused, because what passes there is not encrypted.
func Listen(ctx context.Context, address string) (net.Listener, error) {
	if path, ok := strings.CutPrefix(address, unixPrefix); ok {
		return listenUnix(ctx, path, false)
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fault.WithHint(fault.Usagef("--listen: %q is neither HOST:PORT nor unix:PATH", address),
			"127.0.0.1:8080 is an address on this host")
	}
	if host == "localhost" {
		host = "127.0.0.1"
	}
	ip, err := netip.ParseAddr(host)
	if err != nil || !ip.IsLoopback() || ip.Zone() != "" {
		return nil, fault.WithHint(fault.Usagef("--listen: %q is not on the loopback interface", address),
			"other hosts reach it with --tls-cert, or with 'ssh -L 8080:127.0.0.1:8080 HOST', which also encrypts")
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(ip.String(), port))
	if err != nil {
		return nil, fault.Exitf(fault.ExitBusy, "listen at %s: %w", address, err)
	}
	return l, nil
}

// ListenForPeers listens at address, which is unix:PATH, for other users too.
func ListenForPeers(ctx context.Context, address string) (net.Listener, error) {
	path, ok := strings.CutPrefix(address, unixPrefix)
	if !ok {
		return nil, fault.Usagef("--peer is for --listen unix:PATH: only there the system says who asks")
	}
	return listenUnix(ctx, path, true)
}

// listenUnix makes a socket that only this user can reach. Its folder must belong to this user alone, so that
// there is no moment at which others could connect. A socket for other users, who are identified by the
// system, can be reached by all who may enter the folder; they must not be able to replace it. A socket that
// no process listens at is removed first.
func listenUnix(ctx context.Context, path string, others bool) (net.Listener, error) {
	if !peersKnown {
		return nil, fault.Usagef("--listen: Unix sockets are for Linux, where the peer's user is known")
	}
	folder, err := os.Stat(filepath.Dir(path))
	if err != nil {
		return nil, fault.Exitf(fault.ExitUsage, "listen at %s: %w", path, err)
	}
	mode := os.FileMode(0o600)
	switch may := folder.Mode().Perm(); {
	case others && may&0o022 != 0:
		return nil, fault.WithHint(
			fault.Usagef("--peer: other users may write into the folder of %s (mode %04o)", path, may),
			"they could put another socket there: chmod go-w it")
	case others && may&0o011 == 0:
		return nil, fault.WithHint(
			fault.Usagef("--peer: no other user may enter the folder of %s (mode %04o)", path, may),
			"let the group of those users in: chgrp GROUP and chmod 710 it")
	case others:
		mode = 0o666
	case ownerfile.OpenToOthers(folder):
		return nil, fault.WithHint(
			fault.Usagef("--listen: the folder of %s lets other users in (mode %04o)", path, folder.Mode().Perm()),
			"make a folder for it: mkdir -m 700 %s", buildinfo.ProgramName+".run")
	}
	if err := removeDead(ctx, path); err != nil {
		return nil, err
	}
	l, err := new(net.ListenConfig).Listen(ctx, "unix", path)
	if err != nil {
		return nil, fault.Exitf(fault.ExitBusy, "listen at %s: %w", path, err)
	}
	if err := os.Chmod(path, mode); err != nil {
		return nil, errors.Join(fmt.Errorf("listen at %s: %w", path, err), l.Close())
	}
	return l, nil
}

// removeDead removes the socket at path, unless a process answers there.
func removeDead(ctx context.Context, path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return nil // there is none
	}
	if info.Mode()&os.ModeSocket == 0 {
		return fault.Usagef("--listen: %s is there, and is not a socket", path)
	}
	conn, err := new(net.Dialer).DialContext(ctx, "unix", path)
	if err == nil {
		_ = conn.Close()
		return fault.Exitf(fault.ExitBusy, "listen at %s: another process listens there", path)
	}
	return os.Remove(path)
}
