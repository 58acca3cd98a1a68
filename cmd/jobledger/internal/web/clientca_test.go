package web

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"jobledger/cmd/jobledger/internal/web/access"
	"jobledger/cmd/jobledger/internal/web/api"
	"jobledger/cmd/jobledger/internal/web/apitest"
	"jobledger/cmd/jobledger/internal/web/door"
	"jobledger/commands"
	"jobledger/commands/commandstest"
	"jobledger/commands/remote"
	"jobledger/ledger"
	"jobledger/ledger/event"
)

// authority signs the certificates of clients.
type authority struct {
	t    *testing.T
	file string // its own certificate
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) authority {
	t.Helper()
	cert, key := writeCertificate(t, t.TempDir(), 1, "authority")
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	return authority{t, cert, pair.Leaf, pair.PrivateKey.(*ecdsa.PrivateKey)}
}

// sign writes a certificate for a client called name, with its key, into one file.
func (a authority) sign(name string, change func(*x509.Certificate)) (file string) {
	a.t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	if change != nil {
		change(template)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &private.PublicKey, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	secret, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		a.t.Fatal(err)
	}
	file = filepath.Join(a.t.TempDir(), "client.pem")
	text := append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: secret})...)
	if err := os.WriteFile(file, text, 0o600); err != nil {
		a.t.Fatal(err)
	}
	return file
}

// serveCertified is a server with TLS that takes certificates which the authority in the file ca signed.
func serveCertified(t *testing.T, ca string) (s *served, trust string) {
	t.Helper()
	cert, key := writeCertificate(t, t.TempDir(), 1, "localhost")
	certificate, err := door.LoadCertificate(cert, key, t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	clients, err := door.LoadClientCA(ca, t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	s = serveWith(t, "127.0.0.1:0", func(c *Config) {
		c.Certificate, c.ClientCA, c.AllowErase = certificate, clients, true
	})
	_, port, _ := strings.Cut(strings.TrimPrefix(s.base, "http://"), ":")
	s.base = "https://localhost:" + port
	s.client.Transport = with("")
	return s, cert
}

// with connects with the certificate in file, even if the server names other authorities; "": with none.
func with(file string) *http.Transport {
	config := &tls.Config{InsecureSkipVerify: true} // #nosec G402
	if file != "" {
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			pair, err := tls.LoadX509KeyPair(file, file)
			return &pair, err
		}
	}
	return &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true}
}

// ask sends a request on a connection of its own with the certificate in file.
func (s *served) ask(file, path string, header ...string) (status int, answer string) {
	s.t.Helper()
	transport := with(file)
	defer transport.CloseIdleConnections()
	return s.askOver(transport, path, header...)
}

func (s *served) askOver(transport http.RoundTripper, path string, header ...string) (status int,
	answer string) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), "GET", s.base+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	got, err := transport.RoundTrip(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return got.StatusCode, string(text)
}

// A client with a certificate has the scopes and queues of the grant with its name, and events name it.
func TestClientCertificateIsForItsGrant(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	s, trust := serveCertified(t, ca.file)
	s.create("build7", []string{"q"}, access.Enqueue, access.Work)
	file := ca.sign("build7", nil)
	client, err := remote.New(remote.Config{URL: s.base, CA: trust, ClientCert: file, ClientKey: file})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if _, err := client.Enqueue(t.Context(), "", commands.Enqueue{Queue: "q"}); err != nil {
		t.Fatal(err)
	}
	jobs, err := client.Claim(t.Context(), commands.ClaimRequest{Queues: []string{"q"},
		Worker: event.Worker{Name: "w", Boot: "b"}})
	if err != nil || len(jobs) != 1 {
		t.Errorf("claimed %d jobs, %v", len(jobs), err)
	}
	if _, err := client.Enqueue(t.Context(), "", commands.Enqueue{Queue: "other"}); err == nil ||
		!strings.Contains(err.Error(), "not for the queue") {
		t.Errorf("a job of another queue: %v", err)
	}
	if status, _ := s.ask(file, api.Root+"/status"); status != http.StatusForbidden {
		t.Errorf("another scope: %d", status)
	}
	actors := ""
	err = s.Store.Read(t.Context(), func(tx *ledger.Tx) error {
		for e, err := range tx.Events(t.Context(), ledger.Filter{After: 1}) {
			if err != nil {
				return err
			}
			actors += e.Kind().String() + " " + e.Actor + "\n"
		}
		return nil
	})
	if want := "enqueued http:build7\nclaimed http:build7\n"; err != nil || actors != want {
		t.Errorf("events %q, %v, want %q", actors, err, want)
	}
	if all, err := access.List(s.access); err != nil || all[0].Used == "" {
		t.Errorf("the grant was used, and is %+v, %v", all, err)
	}
	commandstest.Verify(t, s.Store)
}

// What is wrong with a certificate is in the answer.
func TestClientCertificateIsRefused(t *testing.T) {
	t.Parallel()
	ca, other := newAuthority(t), newAuthority(t)
	s, _ := serveCertified(t, ca.file)
	s.create("ada", []string{"*"}, access.Read)
	s.create("gone", []string{"*"}, access.Read)
	if _, err := access.Revoke(s.access, "gone", time.Now()); err != nil {
		t.Fatal(err)
	}
	hour := time.Hour
	for name, c := range map[string]struct {
		file, want string
	}{
		"good":          {ca.sign("ada", nil), ""},
		"none":          {"", "a client certificate, of which there is none"},
		"unknown name":  {ca.sign("eve", nil), `is for \"eve\", and no token of that name is in force`},
		"revoked":       {ca.sign("gone", nil), `is for \"gone\", and no token of that name is in force`},
		"without name":  {ca.sign("", nil), "has no common name"},
		"other authors": {other.sign("ada", nil), "no certificate of this server's --client-ca signed"},
		"expired": {ca.sign("ada", func(c *x509.Certificate) {
			c.NotBefore, c.NotAfter = c.NotBefore.Add(-hour), time.Now().Add(-time.Minute)
		}), `the certificate of \"ada\" expired at 20`},
		"too early": {ca.sign("ada", func(c *x509.Certificate) { c.NotBefore = time.Now().Add(hour / 2) }),
			`the certificate of \"ada\" is valid from 20`},
		"of a server": {ca.sign("ada", func(c *x509.Certificate) {
			c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
		}), "lacks clientAuth"},
	} {
		status, answer := s.ask(c.file, api.Root+"/status")
		if c.want == "" && status != http.StatusOK {
			t.Errorf("%s: %d %s", name, status, answer)
		}
		if c.want != "" && (status != http.StatusUnauthorized || !strings.Contains(answer, c.want) ||
			!strings.Contains(answer, `"code":"unauthenticated"`)) {
			t.Errorf("%s: %d %s, want %s", name, status, answer, c.want)
		}
	}
}

// With a token nothing else is looked at, and with a certificate no cookie is.
func TestClientCertificateNextToOthers(t *testing.T) {
	t.Parallel()
	ca, other := newAuthority(t), newAuthority(t)
	s, _ := serveCertified(t, ca.file)
	cookie, _ := s.login()
	s.create("figures", []string{"*"}, access.Metrics)
	token := s.create("reader", []string{"*"}, access.Read)
	good, bad := ca.sign("figures", nil), other.sign("figures", nil)
	page := api.Root + "/status" // it needs read, which the owner's session has
	for name, c := range map[string]struct {
		file   string
		header []string
		want   int
	}{
		"certificate":                        {good, nil, 403},
		"certificate and cookie":             {good, []string{"Cookie", cookie}, 403},
		"bad certificate and cookie":         {bad, []string{"Cookie", cookie}, 401},
		"cookie":                             {"", []string{"Cookie", cookie}, 200},
		"certificate and token":              {good, []string{"Authorization", token}, 200},
		"bad certificate and token":          {bad, []string{"Authorization", token}, 200},
		"certificate and wrong token":        {good, []string{"Authorization", "Bearer x"}, 401},
		"certificate of another page's form": {good, []string{"Origin", "https://evil.example"}, 403},
	} {
		if status, answer := s.ask(c.file, page, c.header...); status != c.want {
			t.Errorf("%s: %d %s, want %d", name, status, answer, c.want)
		}
	}
	if status, _ := s.ask(good, "/metrics"); status != http.StatusOK {
		t.Errorf("what the certificate is for: %d", status)
	}
}

// The server reads the file of --client-ca again, also for connections that are open.
func TestClientAuthoritiesAreReloaded(t *testing.T) {
	t.Parallel()
	ca, next := newAuthority(t), newAuthority(t)
	text, err := os.ReadFile(ca.file)
	if err != nil {
		t.Fatal(err)
	}
	file := writeText(t, t.TempDir(), "ca.pem", string(text))
	s, _ := serveCertified(t, file)
	s.create("ada", []string{"*"}, access.Read)
	before, after := with(ca.sign("ada", nil)), with(next.sign("ada", nil))
	defer before.CloseIdleConnections()
	defer after.CloseIdleConnections()
	if status, answer := s.askOver(before, api.Root+"/status"); status != http.StatusOK {
		t.Fatalf("before: %d %s", status, answer)
	}
	if status, _ := s.askOver(after, api.Root+"/status"); status != http.StatusUnauthorized {
		t.Errorf("an authority that is not in the file yet: %d", status)
	}
	writeText(t, filepath.Dir(file), "ca.pem", "no certificate")
	if status, answer := s.askOver(before, api.Root+"/status"); status != http.StatusOK {
		t.Errorf("with a file that is not whole: %d %s", status, answer)
	}
	if text, err = os.ReadFile(next.file); err != nil {
		t.Fatal(err)
	}
	writeText(t, filepath.Dir(file), "ca.pem", string(text))
	for {
		if status, _ := s.askOver(after, api.Root+"/status"); status == http.StatusOK {
			break
		}
		time.Sleep(50 * time.Millisecond) // the file is looked at once a second
	}
	if status, _ := s.askOver(before, api.Root+"/status"); status != http.StatusUnauthorized {
		t.Errorf("an authority that was removed: %d", status)
	}
}

// A client reads its certificate again where the server refuses it.
func TestClientReadsItsCertificateAgain(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	s, trust := serveCertified(t, ca.file)
	for _, name := range []string{"first", "second"} {
		s.create(name, []string{"*"}, access.Enqueue)
	}
	file := ca.sign("first", nil)
	client, err := remote.New(remote.Config{URL: s.base, CA: trust, ClientCert: file, ClientKey: file})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for _, name := range []string{"first", "second"} {
		jobs, err := client.Enqueue(t.Context(), "", commands.Enqueue{Queue: "q"})
		if err != nil || len(jobs) != 1 {
			t.Fatalf("%s: %v, %v", name, jobs, err)
		}
		if err := os.Rename(ca.sign("second", nil), file); err != nil {
			t.Fatal(err)
		}
		if _, err := access.Revoke(s.access, name, time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := client.Enqueue(t.Context(), "", commands.Enqueue{Queue: "q"}); err == nil ||
		!strings.Contains(err.Error(), `for "second"`) {
		t.Errorf("after both were revoked: %v", err)
	}
	commandstest.Verify(t, s.Store)
}

func TestClientCertificateFilesAreChecked(t *testing.T) {
	ca := newAuthority(t)
	file, open := ca.sign("a", nil), ca.sign("a", nil)
	if err := os.Chmod(open, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ url, cert, key, want string }{
		{"https://localhost", file, "", "both files"},
		{"https://localhost", "", file, "both files"},
		{"http://localhost:1", file, file, "https://HOST"},
		{"unix:s", file, file, "https://HOST"},
		{"https://localhost", file, open, "chmod 600"},
		{"https://localhost", ca.file, ca.file, "client certificate"},
		{"https://localhost", file, file + "x", "no such file"},
		{"https://localhost", file, file, ""},
	} {
		client, err := remote.New(remote.Config{URL: c.url, ClientCert: c.cert, ClientKey: c.key})
		if got := fmt.Sprint(err); err == nil && c.want != "" || err != nil && !strings.Contains(got, c.want) {
			t.Errorf("%+v: %v", c, err)
		}
		if err == nil {
			_ = client.Close()
		}
	}
	if _, err := door.LoadClientCA(writeText(t, t.TempDir(), "ca.pem", "x"), t.Logf); err == nil {
		t.Error("a file without certificates is taken")
	}
}

// The document names the credentials that each operation takes, certificates among them: it takes each of
// these, with all scopes, and no other. A server without --client-ca does not name them.
func TestDocumentHasTheCredentials(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	s, _ := serveCertified(t, ca.file)
	token := s.create("all", []string{"*"}, access.Scopes...)
	cookie, _ := s.login()
	plain, certified := with(""), with(ca.sign("all", nil))
	defer plain.CloseIdleConnections()
	defer certified.CloseIdleConnections()
	status, text := s.askOver(certified, api.Root+"/openapi.json")
	var d struct {
		apitest.Document
		Security   []map[string]any
		Components struct {
			SecuritySchemes map[string]struct{ Type string }
		}
	}
	if err := json.Unmarshal([]byte(text), &d); status != http.StatusOK || err != nil {
		t.Fatal(status, err)
	}
	types := map[string]string{"session": "apiKey", "token": "http", "certificate": "mutualTLS"}
	for name, want := range types {
		if got := d.Components.SecuritySchemes[name].Type; got != want {
			t.Errorf("%s is of the type %q, want %q", name, got, want)
		}
	}
	asked := 0
	for path, operations := range d.Paths {
		address := strings.NewReplacer("{job}", string(s.job), "{queue}", "mail", "{pos}", "1", "{attempt}", "1",
			"{stream}", "out", "{token}", "01KDXYZAF8000000000000000A", "{boot}", "01KDXYZAF8000000000000000B").
			Replace(path)
		for method, operation := range operations {
			schemes := d.Security
			if operation.Security != nil {
				schemes = *operation.Security
			}
			if len(schemes) == 0 {
				continue // it needs none
			}
			if strings.HasSuffix(path, "/stream") {
				method = "head" // the answer to GET has no end
			}
			documented := make(map[string]bool)
			for _, scheme := range schemes {
				for name := range scheme {
					documented[name] = true
				}
			}
			for name, header := range map[string][]string{"session": {"Cookie", cookie}, "certificate": nil,
				"token": {"Authorization", token}} {
				transport := plain
				if name == "certificate" {
					transport = certified
				}
				s.client.Transport = transport
				answer, body := s.do(strings.ToUpper(method), address, nil, header...)
				let := answer.StatusCode != http.StatusUnauthorized && answer.StatusCode != http.StatusForbidden
				if let != documented[name] {
					t.Errorf("%s %s with a %s: %s %s, in the document: %t", method, path, name, answer.Status, body,
						documented[name])
				}
				asked++
			}
		}
	}
	if asked < 100 {
		t.Errorf("%d requests", asked)
	}
	other := serve(t, "127.0.0.1:0")
	_, text = other.do("GET", api.Root+"/openapi.json", nil, "Authorization", other.create("r", []string{"*"},
		access.Read))
	var without map[string]any
	if err := json.Unmarshal([]byte(text), &without); err != nil {
		t.Fatal(err)
	}
	if text = strings.Join(strings.Fields(text), ""); strings.Contains(text, "certificate") ||
		!strings.Contains(text, `"security":[{"token":[]}]`) {
		t.Error("a server without --client-ca has certificates in its document")
	}
}
