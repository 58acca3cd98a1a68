package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/cli/archived"
	"jobledger/cmd/jobledger/internal/doctor"
	"jobledger/cmd/jobledger/internal/verbs/maintain"
	"jobledger/cmd/jobledger/internal/web"
	"jobledger/cmd/jobledger/internal/web/access"
	"jobledger/cmd/jobledger/internal/web/door"
	"jobledger/cmd/jobledger/internal/web/frame"
	"jobledger/cmd/jobledger/internal/when"
	"jobledger/commands"
	"jobledger/commands/archive"
	"jobledger/commands/cron"
	"jobledger/ledger"
)

// serveVerb shows the ledger to browsers and other programs.
func serveVerb(p *program) cli.Verb {
	return cli.Verb{
		Name: "serve", Group: cli.GroupSee, Usage: "show the ledger in a browser, as a JSON API, and as metrics",
		About: "Pages show the ledger, now and at any moment, and operators act there; programs, producers and " +
			"workers have an API. Each request needs a credential. A program has a token, which 'jobledger token' " +
			"makes. For a browser, serve prints a login link at the start, which works once, for 5 minutes; the " +
			"login page can have another one printed. A session lasts 12 hours, and ends after one without a " +
			"request. On a Unix socket, whose folder must belong to this user alone, the processes of this user " +
			"need no login.\n" +
			"The API under /api/v1 answers what status, list, show, history, why, workers, queues and events " +
			"print with --json; /metrics has the format of Prometheus. 'jobledger help http' says how to run it " +
			"behind nginx, Caddy, systemd and ssh -L. It runs until it is interrupted, and then ends with 0.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "listen", Usage: "at this `ADDRESS`: HOST:PORT, port 0 for a free one, or unix:PATH",
				Value: anyPort, DefaultText: "127.0.0.1 and a free port, the same one each time"},
			&cli.StringFlag{Name: "import", Usage: "in place of --db, look at `FILE`: the .zip of an incident, or " +
				"what export wrote; it only reads"},
			cli.ListFlag("ledger", "in place of --db, several: `NAME=DSN`; each has an address of its own, and "+
				"all of them an overview"),
			cli.ListFlag("peer", "on a Unix socket, what another user may do: `uid=ID:SCOPES@QUEUES`; may be "+
				"repeated"),
			cli.ListFlag("allow", "anyone who logs in by a link may do `SCOPE` too: erase"),
			accessFlag(),
			webhooksFlag(),
			&cli.StringFlag{Name: "tls-cert", Usage: "encrypt with the certificate in `FILE`, in PEM; then other " +
				"hosts may reach it"},
			&cli.StringFlag{Name: "tls-key", Usage: "the key of --tls-cert is in `FILE`"},
			&cli.StringFlag{Name: "client-ca", Usage: "clients may present a certificate that one in `FILE` " +
				"signed, in place of a token"},
			&cli.StringFlag{Name: "behind-proxy", Usage: "a proxy on this host ends TLS, and browsers know the " +
				"server as `URL`"},
			&cli.StringFlag{Name: "path-prefix", Usage: "the path of every address begins with `PREFIX`, as in /jobs"},
			&cli.BoolFlag{Name: "prefix-stripped", Usage: "a proxy removes the prefix from the path of requests"},
			cli.ListFlag("from", "with --behind-proxy: its addresses are in `CIDR`; may be repeated"),
			&cli.StringFlag{Name: "admin", Usage: "profiles of this process at `HOST:PORT`, for tokens with the " +
				"scope admin"},
			&cli.StringFlag{Name: "check-at", Usage: "verify the whole ledger each day at `TIME`, local time; off: " +
				"only when asked to", Value: defaultCheckAt},
			cli.ArchiveCacheFlag(),
			&cli.StringFlag{Name: "zone", Usage: "pages show times in the zone `NAME`, such as Europe/Berlin, " +
				"unless the reader chooses another", DefaultText: "that of TZ, or of this machine"},
			cli.WholeFlag("rate", "a token may make `N` requests a second, on average", access.PerSecond, 1, 1_000_000,
				""),
		},
		Examples: []cli.Example{
			{"jobledger serve", "prints the link to open in a browser on this host; the port stays the same"},
			{"jobledger serve --listen 127.0.0.1:8080",
				"always at the same port, as for 'ssh -L 8080:127.0.0.1:8080'"},
			{"jobledger serve --ledger orders=orders.db --ledger mail=mail.db",
				"two ledgers, and an overview of both"},
			{"jobledger serve --import bad-night.zip", "a night of another host, to go through it"},
			{"jobledger serve --listen :8443 --tls-cert server.pem --tls-key server.key",
				"for other hosts; the files are read again when they change"},
			{"jobledger serve --listen :8443 --tls-cert server.pem --tls-key server.key --client-ca ca.pem",
				"programs may have certificates in place of tokens"},
			{"jobledger serve --listen 127.0.0.1:8080 --behind-proxy https://jobs.example.com",
				"behind nginx or Caddy on this host"},
			{"jobledger serve --listen 127.0.0.1:8080 --behind-proxy https://tools.example.com/jobs",
				"the same below a path, which the proxy leaves in requests"},
			{"jobledger serve --listen unix:/run/user/1000/jobledger/http",
				"for 'curl --unix-socket /run/user/1000/jobledger/http http://localhost/api/v1/status'"},
			{"jobledger serve --listen unix:/run/jobledger/http --peer uid=1001:enqueue@mail",
				"the user 1001 may enqueue mail there too"},
		},
		Exits: []int{cli.ExitNothing, cli.ExitBusy},
		Run:   func(c *cli.Context) error { return p.serve(c) },
	}
}

func (p *program) serve(c *cli.Context) error {
	ctx := c.Context
	if err := p.useZone(c.String("zone")); err != nil {
		return err
	}
	if c.IsSet("ledger") {
		return p.serveSeveral(c)
	}
	if c.IsSet("import") {
		remove, err := p.importAside(ctx, c.String("import"))
		if err != nil {
			return err
		}
		defer remove()
	}
	p.Stays = true
	service, err := p.Open(ctx)
	if err != nil {
		return err
	}
	defer service.Store.Close()
	config := p.webConfig(service.Store, archiveFolder(service.Store))
	if config.ArchiveCache, err = cli.ArchiveCache(c.String("archive-cache")); err != nil {
		return err
	}
	config.Access, config.Rate = p.accessPath(c), float64(c.Int("rate"))
	config.Webhooks = p.webhooksPath(c)
	if config.CheckAt, err = p.daily(c.String("check-at")); err != nil {
		return err
	}
	if config.AllowErase, err = allowsErase(c); err != nil {
		return err
	}
	if config.ReadOnly = c.IsSet("import"); config.ReadOnly {
		config.Access, config.Webhooks = "", ""
		for _, name := range []string{"peer", "allow"} {
			if c.IsSet(name) {
				return cli.Usagef("--import and --%s cannot be combined", name)
			}
		}
	}
	listener, err := p.listen(c, &config, service.Store.Path())
	if err != nil {
		return err
	}
	defer listener.Close() // where it is not served
	admin := ""
	if c.IsSet("admin") {
		if config.Admin, err = listenAdmin(c, config.Access); err != nil {
			return err
		}
		defer config.Admin.Close()
		admin = config.Admin.Addr().String()
	}
	ctx = cli.UntilSignalled(ctx)
	server := web.New(config)
	if err := p.printAddress(listener.Addr().String(), admin); err != nil {
		return err
	}
	return server.Serve(ctx, listener)
}

// useZone shows and reads times in the zone that --zone names; "": in that of the machine.
func (p *program) useZone(name string) error {
	if name == "" {
		return nil
	}
	zone, err := frame.ReadZone(name)
	if err != nil {
		return cli.Usagef("--zone: %w", err)
	}
	here := p.Now
	p.Now = func() time.Time { return here().In(zone) }
	return nil
}

// allowsErase reports whether --allow gives the right to erase to anyone who logs in by a link.
func allowsErase(c *cli.Context) (allowed bool, err error) {
	for _, scope := range c.StringSlice("allow") {
		if scope != string(access.Erase) {
			return false, cli.WithHint(cli.Usagef("--allow: %q is not erase", scope),
				"a session has read, bodies, operate and metrics; for others make a token with 'jobledger token create'")
		}
		allowed = true
	}
	return allowed, nil
}

// listenAdmin listens where --admin says; access is the file of tokens.
func listenAdmin(c *cli.Context, access string) (net.Listener, error) {
	address := c.String("admin")
	switch {
	case access == "":
		return nil, cli.Usagef("--admin needs tokens, and there are none: give --access FILE")
	case strings.HasPrefix(address, "unix:"):
		return nil, cli.Usagef("--admin is HOST:PORT on the loopback interface")
	}
	return door.Listen(c.Context, address)
}

// listen listens where the flags say, and takes what they say of TLS into config. path is that of the
// ledger.
func (p *program) listen(c *cli.Context, config *web.Config, path string) (l net.Listener, err error) {
	address, cert, key := c.String("listen"), c.String("tls-cert"), c.String("tls-key")
	if public := c.String("behind-proxy"); public != "" {
		if config.Proxy, err = door.ParseProxy(public, c.StringSlice("from")); err != nil {
			return nil, err
		}
		if err := door.CheckProxy(config.Proxy, address); err != nil {
			return nil, err
		}
	}
	if config.Prefix, err = prefixOf(c, config.Proxy); err != nil {
		return nil, err
	}
	switch {
	case config.Proxy == nil && c.IsSet("from"):
		return nil, cli.Usagef("--from is for --behind-proxy")
	case config.Proxy != nil && cert+key != "":
		return nil, cli.Usagef("--behind-proxy and --tls-cert cannot be combined: the proxy ends TLS")
	case (cert == "") != (key == ""):
		return nil, cli.Usagef("--tls-cert and --tls-key are given as a pair")
	case cert == "" && c.IsSet("client-ca"):
		return nil, cli.Usagef("--client-ca is for --tls-cert: without TLS there are no certificates")
	case c.IsSet("peer") && cert != "":
		return nil, cli.Usagef("--peer and --tls-cert cannot be combined: a Unix socket needs no TLS")
	case c.IsSet("peer"):
		if config.Peers, err = door.ParsePeers(c.StringSlice("peer")); err != nil {
			return nil, err
		}
		return door.ListenForPeers(c.Context, address)
	case cert == "":
		return p.listenAt(c, path, address, door.Listen)
	}
	if file := c.String("client-ca"); file != "" {
		if config.ClientCA, err = door.LoadClientCA(file, p.Message); err != nil {
			return nil, err
		}
	}
	if config.Certificate, err = door.LoadCertificate(cert, key, p.Message); err != nil {
		return nil, err
	}
	return p.listenAt(c, path, address, door.ListenTLS)
}

// listenAt listens at address or, where no flag says that, at the port that the ledger at path had before. A
// ledger that is imported has none.
func (p *program) listenAt(c *cli.Context, path, address string,
	listen func(context.Context, string) (net.Listener, error)) (net.Listener, error) {
	if c.IsSet("listen") || c.IsSet("import") {
		return listen(c.Context, address)
	}
	return p.listenAgain(c.Context, path, listen)
}

// defaultCheckAt is when the whole ledger is verified, unless --check-at says otherwise.
const defaultCheckAt = "03:00"

// daily is the schedule that --check-at says, in the zone of the program's clock.
func (p *program) daily(text string) (cron.Schedule, error) {
	if text == "off" {
		return cron.Schedule{}, nil
	}
	at, ok := when.TimeOfDay(text)
	if !ok || at%time.Minute != 0 {
		return cron.Schedule{}, cli.Usagef("--check-at: %q is not a time of day such as 03:00 or 3am, or off", text)
	}
	return cron.Parse(fmt.Sprintf("%d %d * * *", at/time.Minute%60, at/time.Hour), p.Now().Location())
}

// prefixOf is the path prefix that the flags set.
func prefixOf(c *cli.Context, proxy *door.Proxy) (p door.Prefix, err error) {
	if p.Path, err = door.ParsePrefix(c.String("path-prefix")); err != nil {
		return p, err
	}
	if proxy != nil && proxy.Path != "" {
		if p.Path != "" && p.Path != proxy.Path {
			return p, cli.Usagef("--path-prefix is %s, and the path of --behind-proxy is %s", p.Path, proxy.Path)
		}
		p.Path = proxy.Path
	}
	if p.Stripped = c.Bool("prefix-stripped"); p.Stripped && p.Path == "" {
		return p, cli.Usagef("--prefix-stripped is for --path-prefix, or for --behind-proxy with a path")
	}
	return p, nil
}

// archiveFolder returns the folder of the archive of store; "": it is not known.
func archiveFolder(store *ledger.Store) string {
	return cli.ArchiveFolder(os.Getenv(cli.ArchiveEnv), store)
}

// webConfig serves store by the verbs of this program. Its archive is in the folder dir; "": there is no
// known archive.
func (p *program) webConfig(store *ledger.Store, dir string) web.Config {
	service := &commands.Service{Store: store}
	_, owner, _ := strings.Cut(p.DefaultActor(), ":")
	keeper := archived.Keeper(service, "sweeper:"+owner)
	keeper.Dir = dir
	config := web.Config{
		Config: door.Config{Store: store, Now: p.Now, Owner: p.DefaultActor(), Announce: p.announce,
			Report: p.Message},
		Host: cli.Hostname(""), Examine: p.examine(store), Name: cli.DisplayDSN(p.DB), Also: keeper.Step}
	config.CheckAt, _ = p.daily(defaultCheckAt)
	if dir != "" {
		config.Archived, config.Archive = archive.Ends(store, dir), dir
	}
	return config
}

// examine returns what says what the verb doctor finds of store.
func (p *program) examine(store *ledger.Store) func(context.Context) ([]doctor.Finding, error) {
	of := *p.Program
	of.DB = store.DSN()
	return func(ctx context.Context) ([]doctor.Finding, error) {
		found, err := (&maintain.Verbs{Program: &of}).Examine(ctx, false)
		return found.Findings, err
	}
}

// printAddress prints where the server listens, and where for --admin, at once: another program may wait for
// it.
func (p *program) printAddress(address, admin string) error {
	var err error
	switch {
	case p.JSON && admin != "":
		err = p.PrintJSON(map[string]string{"listen": address, "admin": admin})
	case p.JSON:
		err = p.PrintJSON(map[string]string{"listen": address})
	case admin != "":
		err = p.PrintLine("listens at " + address + ", and for --admin at " + admin)
	default:
		err = p.PrintLine("listens at " + address)
	}
	if err != nil {
		return err
	}
	return p.Flush()
}

// announce prints a login link. It may be called while the server runs, so it does not share the buffer of
// stdout: the link is a message.
func (p *program) announce(link string) {
	p.Message("open within 5 minutes, once: %s", link)
}
