package web

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"jobledger/cmd/jobledger/internal/web/access"
	"jobledger/cmd/jobledger/internal/web/api"
	"jobledger/cmd/jobledger/internal/web/door"
	"jobledger/commands"
	"jobledger/commands/remote"
)

// writeCertificate writes a self-signed certificate for these names, and its key.
func writeCertificate(t *testing.T, folder string, serial int64, names ...string) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := x509.Certificate{SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: names[0]},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), DNSNames: names,
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, &template, &template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(folder, "cert.pem"), filepath.Join(folder, "key.pem")
	for name, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der},
		key: {Type: "EC PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(name+".new", pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(name+".new", name); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

func TestTLSIsForItsHostsAndReloaded(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	cert, key := writeCertificate(t, folder, 1, "jobs.example.com", "localhost")
	certificate, err := door.LoadCertificate(cert, key, t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	s := serveWith(t, "127.0.0.1:0", func(c *Config) { c.Certificate = certificate })
	_, port, _ := strings.Cut(strings.TrimPrefix(s.base, "http://"), ":")
	s.base = "https://localhost:" + port
	s.client.Transport = &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} // #nosec G402
	token := s.create("all", []string{"*"}, access.Enqueue, access.Read)
	for host, want := range map[string]int{"jobs.example.com": 200, "jobs.example.com:" + port: 200,
		"localhost:" + port: 200, "evil.example.com": 421} {
		if answer, _ := s.do("GET", "/healthz", nil, "Host", host); answer.StatusCode != want {
			t.Errorf("Host %s: %s", host, answer.Status)
		}
	}
	cookie, _ := s.login()
	if !strings.HasPrefix(cookie, "__Host-jobledger-") {
		t.Errorf("the cookie %s", cookie)
	}
	for origin, want := range map[string]int{s.base: 303, "http://localhost:" + port: 403} {
		if answer, _ := s.do("POST", "/logout", url.Values{}, "Origin", origin); answer.StatusCode != want {
			t.Errorf("Origin %s: %s", origin, answer.Status)
		}
	}
	client, err := remote.New(remote.Config{URL: s.base, Token: strings.TrimPrefix(token, "Bearer "), CA: cert})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if _, err := client.Enqueue(t.Context(), "", commands.Enqueue{Queue: "q"}); err != nil {
		t.Errorf("a client that trusts the certificate: %v", err)
	}
	old := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{MaxVersion: tls.VersionTLS12,
		InsecureSkipVerify: true}}} // #nosec G402
	r, err := http.NewRequestWithContext(t.Context(), "GET", s.base+"/healthz", nil)
	if err != nil {
		t.Fatal(err)
	}
	if answer, err := old.Do(r); err == nil {
		_ = answer.Body.Close()
		t.Error("TLS 1.2 is accepted")
	}
	writeCertificate(t, folder, 2, "new.example.com", "localhost")
	for {
		s.client.CloseIdleConnections()
		answer, _ := s.do("GET", "/healthz", nil)
		if answer.TLS.PeerCertificates[0].SerialNumber.Int64() == 2 {
			break
		}
		time.Sleep(50 * time.Millisecond) // the files are looked at once a second
	}
	for host, want := range map[string]int{"new.example.com": 200, "jobs.example.com": 421} {
		if answer, _ := s.do("GET", "/healthz", nil, "Host", host); answer.StatusCode != want {
			t.Errorf("with another certificate, Host %s: %s", host, answer.Status)
		}
	}
	if answer, _ := s.do("GET", api.Root+"/status", nil, "Authorization", token); answer.StatusCode != 200 ||
		answer.ProtoMajor != 1 {
		t.Errorf("a token over TLS: %s", answer.Status)
	}
}

func TestProxyEndsTLS(t *testing.T) {
	proxy, err := door.ParseProxy("https://jobs.example.com/", nil)
	if err != nil {
		t.Fatal(err)
	}
	s := serveWith(t, "127.0.0.1:0", func(c *Config) { c.Proxy = proxy })
	link := <-s.links
	if !strings.HasPrefix(link, "https://jobs.example.com/login#") {
		t.Errorf("the link %s", link)
	}
	_, code, _ := strings.Cut(link, "#")
	answer, _ := s.do("POST", "/login", url.Values{"code": {code}}, "Host", "jobs.example.com", "Origin",
		"https://jobs.example.com")
	if cookies := answer.Cookies(); len(cookies) != 1 || !cookies[0].Secure ||
		!strings.HasPrefix(cookies[0].Name, "__Host-") {
		t.Errorf("login through the proxy: %s, cookies %v", answer.Status, cookies)
	}
	for _, c := range []struct {
		host, origin string
		want         int
	}{{"jobs.example.com", "http://jobs.example.com", 403}, {"other.example.com", "", 421},
		{"jobs.example.com", "", 303}} {
		header := []string{"Host", c.host}
		if c.origin != "" {
			header = append(header, "Origin", c.origin)
		}
		if answer, _ := s.do("GET", "/", nil, header...); answer.StatusCode != c.want {
			t.Errorf("%+v: %s", c, answer.Status)
		}
	}
	bad := func(from string) int { // a wrong token, on behalf of that address
		answer, _ := s.do("GET", api.Root+"/status", nil, "Host", "jobs.example.com", "Authorization", "Bearer x",
			"X-Forwarded-For", from)
		return answer.StatusCode
	}
	for range 5 {
		if status := bad("10.9.9.9, 192.0.2.1"); status != 401 {
			t.Fatalf("a wrong token: %d", status)
		}
	}
	if bad("192.0.2.1") != 429 || bad("10.9.9.9, 192.0.2.2") != 401 {
		t.Error("wrong tokens are not counted by the address that the proxy saw")
	}
	lines := 0
	for i := range 6 { // a proxy that adds a line, after the one of the client
		answer, _ := s.do("GET", api.Root+"/status", nil, "Host", "jobs.example.com", "Authorization", "Bearer x",
			"X-Forwarded-For", "10.8.8."+string(rune('1'+i)), "X-Forwarded-For", "192.0.2.7")
		lines = answer.StatusCode
	}
	if lines != 429 {
		t.Errorf("the first line of X-Forwarded-For is believed: %d", lines)
	}
	s = serveWith(t, "127.0.0.1:0", func(c *Config) {
		c.Proxy = &door.Proxy{Host: proxy.Host, From: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}
	})
	statuses := []int{}
	for i := range 6 {
		statuses = append(statuses, bad("198.51.100."+string(rune('1'+i))))
	}
	if statuses[5] != 429 {
		t.Errorf("X-Forwarded-For of a client that is not a proxy is believed: %v", statuses)
	}
}
