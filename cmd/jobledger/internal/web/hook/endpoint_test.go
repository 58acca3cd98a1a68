package hook

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"jobledger/commands"
)

func TestAddressesThatArePublic(t *testing.T) {
	for _, text := range strings.Fields("1.1.1.1 93.184.215.14 2606:4700::1111 ::ffff:1.1.1.1") {
		if !isPublic(netip.MustParseAddr(text)) {
			t.Errorf("%s is public", text)
		}
	}
	for _, text := range strings.Fields("127.0.0.1 0.0.0.0 10.1.2.3 172.16.0.1 192.168.0.1 169.254.169.254 " +
		"100.64.0.1 192.0.2.1 198.18.0.1 224.0.0.1 240.0.0.1 255.255.255.255 :: ::1 fe80::1 fe80::1%eth0 fc00::1 " +
		"fd00:ec2::254 ff02::1 ::ffff:127.0.0.1 ::ffff:169.254.169.254 ::127.0.0.1 64:ff9b::7f00:1 2002:7f00:1:: " +
		"2001:db8::1") {
		if isPublic(netip.MustParseAddr(text)) {
			t.Errorf("%s is not public", text)
		}
	}
}

// An address is looked at when it is known, so a name that stands for one of this host does not help.
func TestWebhookReachesPublicAddressesOnly(t *testing.T) {
	asked := 0
	plain := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked++ }))
	defer plain.Close()
	encrypted := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked++ }))
	defer encrypted.Close()
	named := strings.Replace(encrypted.URL, "127.0.0.1", "localhost", 1)
	for _, tt := range []struct {
		url, allow, code string
	}{
		{encrypted.URL, "", "address"},
		{named, "", "address"},
		{plain.URL, "10.0.0.0/8", "address"},
		{encrypted.URL, "127.0.0.0/8", "tls"}, // no authority of this host has signed the certificate
		{plain.URL, "127.0.0.0/8", ""},
	} {
		e := Endpoint{Name: "crm", URL: tt.url + "/path?key=secret", Parallel: 1, Timeout: 5 * time.Second,
			Secrets: []Secret{NewSecret()}}
		if tt.allow != "" {
			e.Allow = []netip.Prefix{netip.MustParsePrefix(tt.allow)}
		}
		_, a, err := Test(t.Context(), "urn:jobledger:test", e, time.Now())
		if err != nil || a.Code != tt.code || strings.Contains(a.Detail, "secret") {
			t.Errorf("%s, allowed %q: %+v, %v", tt.url, tt.allow, a, err)
		}
	}
	if asked != 1 {
		t.Errorf("%d requests came", asked)
	}
}

func TestEndpointChecks(t *testing.T) {
	good := Endpoint{Name: "crm", URL: "https://example.com/", Parallel: 1, Timeout: time.Second,
		Secrets: []Secret{NewSecret()}}
	for field, change := range map[string]func(*Endpoint){
		"name":     func(e *Endpoint) { e.Name = "a.b" },
		"url":      func(e *Endpoint) { e.URL = "ftp://example.com/" },
		"url ":     func(e *Endpoint) { e.URL = "https://ada:hunter2@example.com/" },
		"url  ":    func(e *Endpoint) { e.URL = "http://example.com/hunter2" },
		"queue":    func(e *Endpoint) { e.Queues = []string{"a*b"} },
		"kind":     func(e *Endpoint) { e.Kinds = []string{"done"} },
		"parallel": func(e *Endpoint) { e.Parallel = MaxParallel + 1 },
		"timeout":  func(e *Endpoint) { e.Timeout = time.Minute },
		"secret":   func(e *Endpoint) { e.Secrets = nil },
	} {
		e := good
		change(&e)
		invalid, ok := e.Check().(*commands.InvalidError)
		if !ok || invalid.Field != strings.TrimSpace(field) || strings.Contains(invalid.Error(), "hunter2") {
			t.Errorf("%s: %v", field, invalid)
		}
	}
	if err := good.Check(); err != nil {
		t.Error(err)
	}
}

// While a secret is rotated, a request has a signature with each; afterwards with the new one alone.
func TestSecretIsRotated(t *testing.T) {
	old, now := NewSecret(), time.Now()
	e := Endpoint{Secrets: []Secret{old}}
	next := NewSecret()
	e.Rotate(next, now, now.Add(time.Hour))
	body := []byte(`{"a":1}`)
	for after, want := range map[time.Duration]string{
		0: next.sign("1-a", now, body) + " " + old.sign("1-a", now, body), time.Hour: next.sign("1-a",
			now.Add(time.Hour), body)} {
		if got := e.signatures("1-a", now.Add(after), body); got != want {
			t.Errorf("after %s: %q", after, got)
		}
	}
	e.Rotate(NewSecret(), now.Add(2*time.Hour), now.Add(3*time.Hour))
	if len(e.Secrets) != 2 {
		t.Errorf("there are %d secrets", len(e.Secrets))
	}
	if same, err := ParseSecret(old.Text() + "\n"); err != nil || same.Text() != old.Text() {
		t.Error(same, err)
	}
	for _, text := range []string{"", "whsec_", "whsec_!!", "secret", "whsec_MTIz"} {
		if _, err := ParseSecret(text); err == nil {
			t.Errorf("%q is a secret", text)
		}
	}
}

// The file is readable for its owner only, and a change that was cut off leaves the one before.
func TestWebhookFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "webhooks")
	e := Endpoint{Name: "crm", URL: "https://example.com/", Parallel: 1, Timeout: time.Second,
		Secrets: []Secret{NewSecret()}}
	add := func(f *File) error { return f.Add(e) }
	if err := Change(path, add); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm()&0o077 != 0 && os.PathSeparator == '/' {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if err := Change(path, add); err == nil || !strings.Contains(err.Error(), "already") {
		t.Errorf("added twice: %v", err)
	}
	if err := os.WriteFile(path+".new", []byte(`{"webhooks":[`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Change(path, func(f *File) error { return f.Remove("crm") }); err == nil {
		t.Error("two at a time")
	}
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(path+".new", old, old); err != nil {
		t.Fatal(err)
	}
	if err := Change(path, func(f *File) error { return f.Remove("crm") }); err != nil {
		t.Error(err)
	}
	if f, err := Read(path); err != nil || len(f.Endpoints) != 0 || f.Source == "" {
		t.Errorf("%+v, %v", f, err)
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(path); err == nil && os.PathSeparator == '/' {
		t.Error("a file that others may read is read")
	}
}
