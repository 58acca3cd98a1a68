package access

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"jobledger/commands"
	_ "jobledger/ledger/ledgertest" // for -soak, which every package's tests must know
)

var start = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

func TestTokensAreFoundUntilRevokedOrExpired(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.access")
	keys := &Keys{Path: path}
	if _, err := keys.Find("jlt_x_y", start); !errors.Is(err, ErrBad) {
		t.Errorf("without a file: %v", err)
	}
	token, g, err := Create(path, Request{Name: "py", Scopes: []Scope{Work, Enqueue, Work},
		Queues: []string{"b", "a*"}, Expires: start.Add(time.Hour)}, start)
	if err != nil || !strings.HasPrefix(token, "jlt_"+g.ID+"_") || len(token) != 4+8+1+43 {
		t.Fatal(token, err)
	}
	text, err := os.ReadFile(path)
	if err != nil || strings.Contains(string(text), token[13:]) {
		t.Fatalf("the file has the token: %s, %v", text, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file has the mode %v, %v", info.Mode(), err)
	}
	found, err := keys.Find(token, start)
	if err != nil || found.Name != "py" || !found.May(Work, "abc") || !found.May(Enqueue, "b") ||
		found.May(Work, "bb") || found.May(Read, "b") || found.AllQueues() || len(found.Scopes) != 2 {
		t.Errorf("found %+v, %v", found, err)
	}
	for _, wrong := range []string{"", token + "x", token[:len(token)-1], "jlt_" + g.ID + "_", token[4:],
		strings.ToUpper(token), "jlt_zzzzzzzz_" + token[13:]} {
		if _, err := keys.Find(wrong, start); !errors.Is(err, ErrBad) {
			t.Errorf("%q: %v", wrong, err)
		}
	}
	if list, err := List(path); err != nil || len(list) != 1 || list[0].Used != "2026-05-04" {
		t.Errorf("list: %+v, %v", list, err)
	}
	if _, err := keys.Find(token, start.Add(time.Hour)); !errors.Is(err, ErrBad) {
		t.Errorf("expired: %v", err)
	}
	if _, _, err := Create(path, Request{Name: "py", Scopes: []Scope{Read}, Queues: []string{"*"}},
		start); !errors.Is(err, commands.ErrConflict) {
		t.Errorf("the same name: %v", err)
	}
	if _, err := Revoke(path, "py", start); err != nil {
		t.Fatal(err)
	}
	if _, err := keys.Find(token, start); !errors.Is(err, ErrBad) {
		t.Errorf("revoked, and seen at once: %v", err)
	}
	if _, err := Revoke(path, "py", start); err == nil {
		t.Error("revoked twice")
	}
	other, _, err := Create(path, Request{Name: "py", Scopes: []Scope{Read}, Queues: []string{"*"}}, start)
	if err != nil {
		t.Fatal(err)
	}
	if found, err := keys.Find(other, start); err != nil || !found.AllQueues() {
		t.Errorf("the name again: %+v, %v", found, err)
	}
}

// A line that a full disk has cut off costs that line only.
func TestTokensSurviveTornLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.access")
	token, _, err := Create(path, Request{Name: "a", Scopes: []Scope{Read}, Queues: []string{"*"}}, start)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, append(text, `{"id":"x`...), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	second, _, err := Create(path, Request{Name: "b", Scopes: []Scope{Read}, Queues: []string{"*"}}, start)
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range []string{token, second} {
		if _, err := (&Keys{Path: path}).Find(one, start); err != nil {
			t.Errorf("%v", err)
		}
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := (&Keys{Path: path}).Find(token, start); err == nil || errors.Is(err, ErrBad) {
		t.Errorf("a file that others can read: %v", err)
	}
}

func TestGrantsRefuseBadInput(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.access")
	good := Request{Name: "a", Scopes: []Scope{Read}, Queues: []string{"*"}}
	for name, change := range map[string]func(*Request){
		"no name": func(r *Request) { r.Name = "" }, "a name with a colon": func(r *Request) { r.Name = "a:b" },
		"a long name":          func(r *Request) { r.Name = strings.Repeat("a", 65) },
		"no scope":             func(r *Request) { r.Scopes = nil },
		"an unknown scope":     func(r *Request) { r.Scopes = []Scope{"x"} },
		"no queue":             func(r *Request) { r.Queues = nil },
		"a * within":           func(r *Request) { r.Queues = []string{"a*b"} },
		"two *":                func(r *Request) { r.Queues = []string{"a**"} },
		"a regular expression": func(r *Request) { r.Queues = []string{".*@x"} },
		"past":                 func(r *Request) { r.Expires = start },
	} {
		r := good
		change(&r)
		if _, _, err := Create(path, r, start); !errors.Is(err, commands.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("something was written")
	}
}

func TestLimitsCountAndForget(t *testing.T) {
	var l Limits
	for i := range 5 {
		if !l.MayTry("1.2.3.4", start) {
			t.Fatalf("attempt %d is refused", i+1)
		}
		l.Bad("1.2.3.4", start)
	}
	if l.MayTry("1.2.3.4", start) || !l.MayTry("1.2.3.5", start) ||
		!l.MayTry("1.2.3.4", start.Add(13*time.Second)) {
		t.Error("not five a minute for each address")
	}
	allowed := 0
	for range 100 {
		if l.Allow("id", 10, start) {
			allowed++
		}
	}
	if allowed != 20 || !l.Allow("other", 10, start) || !l.Allow("id", 10, start.Add(time.Second)) {
		t.Errorf("%d requests at once", allowed)
	}
	for i := range 2 * maxCounters {
		l.Bad(fmt.Sprint(i), start.Add(time.Duration(i)))
	}
	if len(l.bad) > maxCounters {
		t.Errorf("%d addresses are kept", len(l.bad))
	}
}

// The request of a token stays as its caller made it: the scopes of one are often those of a shared list.
func TestCreateLeavesItsRequest(t *testing.T) {
	scopes, queues := []Scope{Work, Read, Enqueue}, []string{"sms", "mail"}
	_, g, err := Create(filepath.Join(t.TempDir(), "access"), Request{Name: "a", Scopes: scopes,
		Queues: queues}, start)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(scopes, []Scope{Work, Read, Enqueue}) ||
		!slices.Equal(queues, []string{"sms", "mail"}) {
		t.Errorf("the request is changed: %v, %v", scopes, queues)
	}
	if !slices.IsSorted(g.Scopes) || !slices.IsSorted(g.Queues) {
		t.Errorf("the grant is not in order: %+v", g)
	}
}
