package main

import (
	"context"
	"errors"
	"net"
	"strconv"
	"strings"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/web"
	"jobledger/cmd/jobledger/internal/web/door"
)

// serveSeveral serves each of the ledgers that --ledger names, at the address of --listen and the ports after
// that; at free ports if its port is 0; without --listen, at the ports that they had before. It ends when one
// of them does.
func (p *program) serveSeveral(c *cli.Context) error {
	for _, name := range []string{"import", "tls-cert", "client-ca", "behind-proxy", "path-prefix", "access",
		"webhooks", "peer", "admin"} {
		if c.IsSet(name) {
			return cli.Usagef("--ledger and --%s cannot be combined", name)
		}
	}
	ctx, cancel := context.WithCancel(cli.UntilSignalled(c.Context))
	defer cancel()
	var servers []*web.Server
	var listeners []net.Listener
	var names, addresses []string
	seen := make(map[string]bool)
	for i, one := range c.StringSlice("ledger") {
		name, dsn, ok := strings.Cut(one, "=")
		if !ok || name == "" || dsn == "" || seen[name] {
			return cli.WithHint(cli.Usagef("--ledger: %q is not NAME=DSN, or its name is there twice", one),
				"as in --ledger orders=orders.db")
		}
		seen[name] = true
		own := *p.Program
		own.DB, own.Stays = dsn, true
		one := &program{&own}
		service, err := one.Open(ctx)
		if err != nil {
			return err
		}
		defer service.Store.Close()
		address, err := portAfter(c.String("listen"), i)
		if err != nil {
			return err
		}
		listener, err := one.listenAt(c, service.Store.Path(), address, door.Listen)
		if err != nil {
			return err
		}
		defer listener.Close()
		config := one.webConfig(service.Store, cli.ArchiveFolder("", service.Store)) // each has its own
		if config.ArchiveCache, err = cli.ArchiveCache(c.String("archive-cache")); err != nil {
			return err
		}
		config.Name, config.Rate, config.Webhooks = name, float64(c.Int("rate")), p.webhooksOf(dsn)
		if config.CheckAt, err = p.daily(c.String("check-at")); err != nil {
			return err
		}
		if config.AllowErase, err = allowsErase(c); err != nil {
			return err
		}
		config.Announce = func(link string) { p.Message("%s: open within 5 minutes, once: %s", name, link) }
		servers, listeners = append(servers, web.New(config)), append(listeners, listener)
		_, port, _ := net.SplitHostPort(listener.Addr().String())
		names, addresses = append(names, name), append(addresses, "http://jobledger.localhost:"+port)
	}
	web.ShowAll(servers, names, addresses)
	for _, l := range listeners {
		if err := p.printAddress(l.Addr().String(), ""); err != nil {
			return err
		}
	}
	ended := make(chan error, len(servers))
	for i, s := range servers {
		go func() { ended <- s.Serve(ctx, listeners[i]) }()
	}
	var all error
	for range servers {
		all = errors.Join(all, <-ended)
		cancel() // the others end too
	}
	return all
}

// portAfter is address with the i-th port after its own; port 0 stays.
func portAfter(address string, i int) (string, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", cli.Usagef("--listen: with several ledgers it is HOST:PORT")
	}
	n, err := net.LookupPort("tcp", port)
	if err != nil || n != 0 && n+i > 65535 {
		return "", cli.Usagef("--listen: %q has no port for each ledger", address)
	}
	if n != 0 {
		n += i
	}
	return net.JoinHostPort(host, strconv.Itoa(n)), nil
}
