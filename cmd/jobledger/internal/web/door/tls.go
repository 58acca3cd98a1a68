package door

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"jobledger/cmd/jobledger/internal/fault"
)

// Certificate is a certificate with its key, in two files of PEM, which are read again when they change. It
// is safe for concurrent use.
type Certificate struct {
	files
	cert, key string
	now       *tls.Certificate
}

// LoadCertificate reads the two files.
func LoadCertificate(cert, key string, report func(format string, args ...any)) (*Certificate, error) {
	c := &Certificate{files: files{names: []string{cert, key}, report: report}, cert: cert, key: key}
	if err := c.read(c.load); err != nil {
		return nil, fault.Exitf(fault.ExitUsage, "--tls-cert and --tls-key: %w", err)
	}
	return c, nil
}

func (c *Certificate) load() error {
	pair, err := tls.LoadX509KeyPair(c.cert, c.key)
	if err == nil && pair.Leaf == nil {
		pair.Leaf, err = x509.ParseCertificate(pair.Certificate[0])
	}
	if err == nil {
		c.now = &pair
	}
	return err
}

// current is the certificate that is in the files. If they cannot be read, for example between the writes of
// the two files, the previous certificate stays.
func (c *Certificate) current() *tls.Certificate {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refresh("the certificate", c.load)
	return c.now
}

// files are read again when one of them changes. The same lock guards what was read.
type files struct {
	names  []string
	report func(format string, args ...any)

	mu      sync.Mutex
	looked  time.Time
	changed []time.Time
}

// lookEvery is how often the files are looked at.
const lookEvery = time.Second

// read has load read the files, where they have changed.
func (f *files) read(load func() error) error {
	changed := make([]time.Time, len(f.names))
	for i, name := range f.names {
		info, err := os.Stat(name)
		if err != nil {
			return err
		}
		changed[i] = info.ModTime()
	}
	if slices.EqualFunc(changed, f.changed, time.Time.Equal) {
		return nil
	}
	if err := load(); err != nil {
		return err
	}
	f.changed = changed
	return nil
}

// refresh is read, once in a while. If it goes wrong, what was read before stays.
func (f *files) refresh(what string, load func() error) {
	now := time.Now()
	if now.Sub(f.looked) < lookEvery {
		return
	}
	f.looked = now
	if err := f.read(load); err != nil {
		f.report("%s cannot be read again: %v", what, err)
	}
}

// config is TLS 1.3 with the certificate.
func (c *Certificate) config() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS13, NextProtos: []string{"h2", "http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.current(), nil }}
}

// name is the first host that the certificate names.
func (c *Certificate) name() string {
	leaf := c.current().Leaf
	for _, name := range leaf.DNSNames {
		if !strings.HasPrefix(name, "*") {
			return name
		}
	}
	if len(leaf.IPAddresses) > 0 {
		return leaf.IPAddresses[0].String()
	}
	return "localhost"
}

// isFor reports whether the certificate names the host of a request.
func (c *Certificate) isFor(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return c.current().Leaf.VerifyHostname(strings.Trim(host, "[]")) == nil
}

// ListenTLS listens at HOST:PORT of any interface; what passes there is encrypted. The server of
// [Door.ServeOn] ends TLS.
func ListenTLS(ctx context.Context, address string) (net.Listener, error) {
	if strings.HasPrefix(address, unixPrefix) {
		return nil, fault.Usagef("--tls-cert is for HOST:PORT, and a Unix socket needs no TLS")
	}
	if _, _, err := net.SplitHostPort(address); err != nil {
		return nil, fault.Usagef("--listen: %q is not HOST:PORT", address)
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fault.Exitf(fault.ExitBusy, "listen at %s: %w", address, err)
	}
	return l, nil
}

// Proxy is a proxy in front of the server, which ends TLS.
type Proxy struct {
	Host string         // what requests name as their host, as in jobs.example.com
	Path string         // of the public URL, as [ParsePrefix] returns it
	From []netip.Prefix // the addresses of the proxy, whose X-Forwarded-For is believed
}

// ParseProxy reads the public URL of the server, and the addresses of its proxy; none: those of this host.
func ParseProxy(public string, from []string) (*Proxy, error) {
	u, err := url.Parse(public)
	if err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" ||
		u.Fragment != "" {
		return nil, fault.Usagef("--behind-proxy: %.80q is not https://HOST[/PREFIX]", public)
	}
	path, err := ParsePrefix(strings.TrimSuffix(u.EscapedPath(), "/"))
	if err != nil {
		return nil, fault.Usagef("--behind-proxy: the path of %.80q is not like /jobs", public)
	}
	p := &Proxy{Host: strings.ToLower(u.Host), Path: path}
	for _, text := range from {
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fault.Usagef("--from: %.80q is not a range of addresses, such as 127.0.0.1/32", text)
		}
		p.From = append(p.From, prefix)
	}
	if from == nil {
		p.From = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}
	}
	return p, nil
}

// Has reports whether the proxy asks from a. A nil Proxy has no address.
func (p *Proxy) Has(a netip.Addr) bool {
	holds := func(from netip.Prefix) bool { return from.Contains(a.Unmap()) }
	return p != nil && slices.ContainsFunc(p.From, holds)
}

// clientOf is the address for which the proxy asked; "": it did not say, or r is not from the proxy.
func (p *Proxy) clientOf(r *http.Request) string {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return ""
	}
	for _, prefix := range p.From {
		if prefix.Contains(from.Addr().Unmap()) {
			lines := r.Header.Values("X-Forwarded-For") // a proxy may add a line rather than extend the last one
			all := strings.Split(strings.Join(lines, ","), ",")
			last := strings.TrimSpace(all[len(all)-1]) // the others are what the client says
			if ip, err := netip.ParseAddr(last); err == nil {
				return ip.String()
			}
		}
	}
	return ""
}

// secure reports whether r came over TLS, to this server or to its proxy.
func (d *Door) secure(r *http.Request) bool {
	return r.TLS != nil || d.Proxy != nil && strings.EqualFold(r.Host, d.Proxy.Host)
}

// OriginOf is the origin of this server's own pages, as r came to it.
func (d *Door) OriginOf(r *http.Request) string {
	if d.secure(r) {
		return "https://" + r.Host
	}
	return "http://" + r.Host
}

// ServeOn serves h on l, with TLS if there is a certificate.
func (d *Door) ServeOn(h *http.Server, l net.Listener) error {
	if d.Certificate == nil {
		return h.Serve(l)
	}
	h.TLSConfig = d.Certificate.config()
	if d.ClientCA != nil {
		d.ClientCA.ask(h.TLSConfig)
	}
	return h.ServeTLS(l, "", "")
}

// CheckProxy returns an error where a proxy would make a local user of each of its own.
func CheckProxy(p *Proxy, address string) error {
	if p != nil && strings.HasPrefix(address, unixPrefix) {
		return fault.Usagef("--behind-proxy is for HOST:PORT: on a Unix socket each user of the proxy would be a " +
			"local one")
	}
	return nil
}
