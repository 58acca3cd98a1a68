package remote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"jobledger/commands"
)

// Config says where the server is, and who asks.
type Config struct {
	URL string // https://HOST[/PREFIX], http:// on the loopback interface, or unix:PATH

	// Token is the bearer token; TokenFile is a file that holds the token instead; it is read again if the
	// server refuses the token. Both may be "" on a Unix socket, where the system says who asks.
	Token, TokenFile string

	CA string // a file with certificates that sign the server's, in PEM; "": those of the system

	// ClientCert and ClientKey are files with a certificate and its key, in PEM, for a server that takes one in
	// place of a token, or asks for both. They are read again for each connection.
	ClientCert, ClientKey string

	Patience time.Duration // how long a request is sent again without an answer; default 10 s
}

// Client is a ledger behind a server. It is safe for concurrent use.
type Client struct {
	base     string // without a slash at the end
	http     *http.Client
	patience time.Duration

	certified bool // there is a client certificate

	mu    sync.Mutex
	token string
	file  string

	flight flight
	lost   lost
	waiter waiter
	done   chan struct{} // closed by Close
	close  sync.Once
}

// New returns a client. It does not connect yet. A URL or token file that cannot be used is a
// [commands.InvalidError].
func New(c Config) (*Client, error) {
	base, socket, err := parse(c.URL)
	if err != nil {
		return nil, err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConns, transport.MaxIdleConnsPerHost = 0, 512
	transport.IdleConnTimeout = 90 * time.Second
	if transport.TLSClientConfig, err = c.tls(strings.HasPrefix(base, "https:")); err != nil {
		return nil, err
	}
	if socket != "" {
		transport.Proxy = nil
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		}
	}
	client := &Client{base: base, token: c.Token, file: c.TokenFile, patience: c.Patience,
		certified: c.ClientCert != "", done: make(chan struct{}),
		http: &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse // a token goes to no other address
		}}}
	client.patience = cmp.Or(client.patience, 10*time.Second)
	if c.Token != "" && c.TokenFile != "" {
		return nil, &commands.InvalidError{Field: "token", Got: "and a file", Allowed: "one of the two"}
	}
	if c.TokenFile != "" {
		if err := client.readToken(); err != nil {
			return nil, err
		}
	}
	if strings.ContainsFunc(client.token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, &commands.InvalidError{Field: "token", Got: "with blanks or other characters",
			Allowed: "what 'jobledger token create' printed"}
	}
	return client, nil
}

// Close ends what the client does in the background. Requests under way are not ended.
func (c *Client) Close() error {
	c.close.Do(func() { close(c.done) })
	c.http.CloseIdleConnections()
	return nil
}

// parse reads the address of a server. socket is the path of a Unix socket; "": there is none.
func parse(text string) (base, socket string, err error) {
	bad := func(allowed string) (string, string, error) {
		return "", "", &commands.InvalidError{Field: "url", Got: fmt.Sprintf("%.80q", hidden(text)),
			Allowed: allowed}
	}
	if path, ok := strings.CutPrefix(text, "unix:"); ok && path != "" {
		return "http://localhost", path, nil
	}
	u, err := url.Parse(text)
	switch {
	case err != nil, u.Scheme != "https" && u.Scheme != "http", u.Host == "", u.RawQuery != "", u.Fragment != "":
		return bad("https://HOST, http://127.0.0.1:PORT or unix:PATH")
	case u.User != nil:
		return bad("an address without a name and a password")
	case u.Scheme == "http" && !loopback(u.Hostname()):
		return bad("https:// for another host, since http:// would show the token to the network")
	}
	return strings.TrimSuffix(u.Scheme+"://"+u.Host+u.EscapedPath(), "/"), "", nil
}

// hidden is an address without what may be a password.
func hidden(text string) string {
	if u, err := url.Parse(text); err == nil {
		return u.Redacted()
	}
	return "…"
}

func loopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || err == nil && ip.IsLoopback()
}

// maxToken is the size of a token file, in bytes.
const maxToken = 4 << 10

// readToken reads the token file.
func (c *Client) readToken() error {
	info, err := os.Stat(c.file)
	if err != nil {
		return err
	}
	if err := checkSecret("token file", c.file, info); err != nil {
		return err
	}
	if info.Size() > maxToken {
		return &commands.InvalidError{Field: "token file", Got: fmt.Sprintf("of %d bytes", info.Size()),
			Allowed: "a file with one token"}
	}
	text, err := os.ReadFile(c.file)
	if err != nil {
		return err
	}
	token := strings.TrimSpace(string(text))
	if token == "" {
		return errors.New("token file: " + c.file + " is empty")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.token = token
	return nil
}

func (c *Client) bearer() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.token
}
