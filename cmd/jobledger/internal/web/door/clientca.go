package door

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync"
	"time"

	"jobledger/cmd/jobledger/internal/fault"
	"jobledger/cmd/jobledger/internal/web/access"
	"jobledger/ledger/event"
)

// ClientCA has the certificates that sign those of clients, in a file of PEM, which is read again when it
// changes. It is safe for concurrent use.
type ClientCA struct {
	files
	now *x509.CertPool
}

// LoadClientCA reads the file.
func LoadClientCA(file string, report func(format string, args ...any)) (*ClientCA, error) {
	c := &ClientCA{files: files{names: []string{file}, report: report}}
	if err := c.read(c.load); err != nil {
		return nil, fault.Exitf(fault.ExitUsage, "--client-ca: %w", err)
	}
	return c, nil
}

func (c *ClientCA) load() error {
	pem, err := os.ReadFile(c.names[0])
	if err != nil {
		return err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return fmt.Errorf("there is no certificate in PEM in %s", c.names[0])
	}
	c.now = pool
	return nil
}

// current are the certificates that are in the file.
func (c *ClientCA) current() *x509.CertPool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refresh("the file of --client-ca", c.load)
	return c.now
}

// ask has a server ask its clients for a certificate. [Door.certified] checks it, and not the handshake: a
// client whose handshake fails learns a number at most, and one that has a token needs no certificate.
func (c *ClientCA) ask(config *tls.Config) {
	config.ClientAuth = tls.RequestClientCert
	config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		own := config.Clone()
		own.GetConfigForClient, own.ClientCAs = nil, c.current()
		return own, nil
	}
}

// checkedKey is the key of a connection's [checked] in the context of its requests.
type checkedKey struct{}

// checked remembers that the client certificate of a connection is valid, so that it is checked once.
type checked struct {
	mu    sync.Mutex
	by    *x509.CertPool
	until time.Time // when the first certificate of its chain expires
}

// certified returns the caller that the client certificate of r stands for: its common name is the name of
// the grant.
func (d *Door) certified(r *http.Request) (Caller, error) {
	c, ok := r.Context().Value(checkedKey{}).(*checked)
	if !ok {
		c = new(checked)
	}
	if err := c.check(r.TLS.PeerCertificates, d.ClientCA.current(), d.Now()); err != nil {
		return Caller{}, Refusal(http.StatusUnauthorized, "unauthenticated", err.Error())
	}
	name := r.TLS.PeerCertificates[0].Subject.CommonName
	if name == "" {
		return Caller{}, Refusal(http.StatusUnauthorized, "unauthenticated",
			"the client certificate has no common name in its subject")
	}
	g, err := d.Keys.Named(name, d.Now())
	switch {
	case errors.Is(err, access.ErrBad):
		return Caller{}, Refusal(http.StatusUnauthorized, "unauthenticated", fmt.Sprintf(
			"the client certificate is for %.80q, and no token of that name is in force", name))
	case err != nil:
		return Caller{}, d.unreadable(err)
	}
	return granted(g, "http:"+g.Name), nil
}

// check returns why the client's certificate, the first of all, is not good.
func (c *checked) check(all []*x509.Certificate, by *x509.CertPool, now time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.by == by && now.Before(c.until) {
		return nil
	}
	between := x509.NewCertPool()
	for _, one := range all[1:] {
		between.AddCert(one)
	}
	chains, err := all[0].Verify(x509.VerifyOptions{Roots: by, Intermediates: between, CurrentTime: now,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	if err != nil {
		return notGood(err, now)
	}
	c.by, c.until = by, all[0].NotAfter
	for _, one := range chains[0] {
		if one.NotAfter.Before(c.until) {
			c.until = one.NotAfter
		}
	}
	return nil
}

// notGood says why a client's certificate was not verified.
func notGood(err error, now time.Time) error {
	if invalid, ok := errors.AsType[x509.CertificateInvalidError](err); ok {
		of := fmt.Sprintf("the certificate of %.80q", invalid.Cert.Subject.CommonName)
		switch {
		case invalid.Reason == x509.Expired && now.After(invalid.Cert.NotAfter):
			return fmt.Errorf("%s expired at %s", of, event.FormatTime(invalid.Cert.NotAfter))
		case invalid.Reason == x509.Expired:
			return fmt.Errorf("%s is valid from %s only", of, event.FormatTime(invalid.Cert.NotBefore))
		case invalid.Reason == x509.IncompatibleUsage:
			return fmt.Errorf("%s is not for clients: its extended key usage lacks clientAuth", of)
		}
	}
	if _, unknown := errors.AsType[x509.UnknownAuthorityError](err); unknown {
		return errors.New("no certificate of this server's --client-ca signed that of the client")
	}
	return fmt.Errorf("the client certificate is not valid: %w", err)
}
