package hook

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"syscall"
)

// notPublic are ranges of addresses of the world's registries that no server of the Internet has, besides
// those that netip.Addr knows: of providers' own networks, documentation, tests, the future, and addresses
// that stand for one of IPv4, which may be any of these.
var notPublic = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),
	netip.MustParsePrefix("100.64.0.0/10"),
	netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("192.0.2.0/24"),
	netip.MustParsePrefix("192.88.99.0/24"),
	netip.MustParsePrefix("198.18.0.0/15"),
	netip.MustParsePrefix("198.51.100.0/24"),
	netip.MustParsePrefix("203.0.113.0/24"),
	netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("::/96"),
	netip.MustParsePrefix("64:ff9b::/96"),
	netip.MustParsePrefix("64:ff9b:1::/48"),
	netip.MustParsePrefix("100::/64"),
	netip.MustParsePrefix("2001::/23"),
	netip.MustParsePrefix("2001:db8::/32"),
	netip.MustParsePrefix("2002::/16"),
	netip.MustParsePrefix("3fff::/20"),
	netip.MustParsePrefix("fec0::/10"),
}

// errAddress means that an address may not be reached.
var errAddress = errors.New("the address is not public")

// within reports whether one of ranges has the address.
func within(a netip.Addr, ranges []netip.Prefix) bool {
	a = a.Unmap().WithZone("")
	return slices.ContainsFunc(ranges, func(p netip.Prefix) bool { return p.Contains(a) })
}

// isPublic reports whether a server of the Internet may have the address.
func isPublic(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	return a.IsGlobalUnicast() && !a.IsPrivate() && !within(a, notPublic)
}

// dialer connects to public addresses and to those of allow, whatever their names stand for: it looks at the
// address just before it connects. Without TLS, to those of allow only.
func dialer(allow []netip.Prefix, encrypted bool) func(ctx context.Context,
	network, address string) (net.Conn, error) {
	d := &net.Dialer{Control: func(_, address string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(address)
		switch {
		case err != nil:
			return err
		case within(to.Addr(), allow), encrypted && isPublic(to.Addr()):
			return nil
		case isPublic(to.Addr()):
			return fmt.Errorf("%s without TLS is not allowed", to.Addr())
		}
		return fmt.Errorf("%s: %w", to.Addr(), errAddress)
	}}
	return d.DialContext
}
