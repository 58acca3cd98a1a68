//go:build unix

package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"jobledger/cmd/jobledger/internal/cli"
)

// serve starts "serve" with these arguments, and returns the address at which it listens.
func (s site) serve(words ...string) (server *running, address string) {
	s.Helper()
	cmd := s.command(append([]string{"serve"}, words...)...)
	out := new(lockedBuffer)
	cmd.Stdout = out
	server = s.start(cmd)
	s.eventually("the server listens: "+server.said.String(), func() bool {
		_, rest, found := strings.Cut(out.String(), "listens at ")
		address, _, _ = strings.Cut(rest, "\n")
		return found && strings.HasSuffix(rest, "\n")
	})
	return server, address
}

// The address of --admin is printed next to the other one.
func TestServeAdminHasProfiles(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	token := s.run("token", "create", "doctor", "--scope", "admin", "--queue", "*")
	server, both := s.serve("--admin", "127.0.0.1:0")
	_, admin, _ := strings.Cut(both, ", and for --admin at ")
	r, err := http.NewRequestWithContext(t.Context(), "GET", "http://"+admin+"/debug/pprof/heap", nil)
	s.ok(err)
	r.Header.Set("Authorization", "Bearer "+token)
	answer, err := http.DefaultClient.Do(r)
	s.ok(err)
	s.ok(answer.Body.Close())
	if answer.StatusCode != http.StatusOK {
		t.Errorf("a profile: %s", answer.Status)
	}
	server.signal(syscall.SIGTERM)
	server.wantExit(cli.ExitOK)
}

// certificate writes a certificate for localhost and a client of this name, which signs itself, with its key.
func (s site) certificate(file, name string) {
	s.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	s.ok(err)
	template := x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"localhost"},
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, &template, &template, &private.PublicKey, private)
	s.ok(err)
	secret, err := x509.MarshalECPrivateKey(private)
	s.ok(err)
	text := append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: secret})...)
	s.ok(os.WriteFile(s.path(file), text, 0o600))
}

// Producers, workers and the commands that these run have a certificate in place of a token.
func TestServeTakesClientCertificates(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.certificate("build7.pem", "build7")
	s.certificate("build8.pem", "build8")
	if out := s.run("token", "create", "build7", "--scope", "enqueue", "--scope", "work", "--queue", "mail",
		"--certificate"); out != "" {
		t.Errorf("a token is printed: %s", out)
	}
	server, address := s.serve("--listen", "127.0.0.1:0", "--tls-cert", "build7.pem", "--tls-key", "build7.pem",
		"--client-ca", "build7.pem")
	_, port, _ := strings.Cut(address, ":")
	at := []string{"--url", "https://localhost:" + port, "--ca", "build7.pem"}
	good := append(at, "--client-cert", "build7.pem", "--client-key", "build7.pem")
	job := s.run(append([]string{"enqueue", "-q", "mail", "x"}, good...)...)
	got := s.ran(append(append([]string{"work", "-q", "mail", "--drain"}, good...), "--", "sh", "-c",
		"unset JOBLEDGER_DB; jobledger heartbeat --progress 50% && echo done")...)
	if got.code != cli.ExitOK || !strings.Contains(got.stderr, "1 claimed, 1 succeeded") {
		t.Errorf("work: %d\n%s%s", got.code, got.stdout, got.stderr)
	}
	if events := s.run("history", job, "--json"); strings.Count(events, `"actor":"http:build7"`) < 4 ||
		!strings.Contains(events, `"progress":0.5`) {
		t.Errorf("the events are\n%s", events)
	}
	s.certificate("open.pem", "build7")
	s.ok(os.Chmod(s.path("open.pem"), 0o644))
	other := []string{"--client-cert", "build8.pem", "--client-key", "build8.pem"}
	for name, words := range map[string][]string{
		"a client certificate, of which there is none":       at,
		"no certificate of this server's --client-ca signed": append(at, other...),
		"without its key":                 append(at, other[:2]...),
		"an address without TLS":          append([]string{"--url", "unix:s"}, other...),
		"lets other users in (mode 0644)": append(at, "--client-cert", "build8.pem", "--client-key", "open.pem"),
	} {
		words = append([]string{"enqueue", "x", "-q", "mail"}, words...)
		if got := s.ran(words...); got.code == cli.ExitOK || !strings.Contains(got.stderr, name) {
			t.Errorf("%v: %d %s, want %s", words, got.code, got.stderr, name)
		}
	}
	server.signal(syscall.SIGTERM)
	server.wantExit(cli.ExitOK)
	s.run("verify")
}
