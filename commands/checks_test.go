package commands_test

import (
	"bytes"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"jobledger/commands"
	"jobledger/commands/load"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection/audit"
)

// Names of actors and workers are valid if an import accepts them: otherwise a ledger could record what its
// own export cannot restore.
func TestValidateNames(t *testing.T) {
	q := newQueue(t)
	q.enqueue(commands.Enqueue{})
	j := q.claimOne("w")
	events := q.Tail()
	long := strings.Repeat("a", commands.MaxActor+1)
	for _, actor := range []string{"", long, "a\xff", "a\x00"} {
		none := time.Duration(0)
		for name, do := range map[string]func() error{
			"enqueue": func() error {
				_, err := q.Enqueue(t.Context(), actor,
					commands.Enqueue{Queue: "mail"})
				return err
			},
			"do": func() error { _, err := q.Apply(t.Context(), actor, j.ID, commands.Cancel{}); return err },
			"all": func() error {
				_, err := q.ApplyBatch(t.Context(), actor, []commands.Op{{Job: j, Command: commands.Cancel{}}})
				return err
			},
			"pause":   func() error { _, err := q.Pause(t.Context(), actor, "mail", ""); return err },
			"resume":  func() error { _, err := q.Resume(t.Context(), actor, "mail", ""); return err },
			"rebuild": func() error { _, err := q.Rebuild(t.Context(), actor); return err },
			"import": func() error {
				_, err := load.Import(t.Context(), q.Service, actor, "x", parsed(nil),
					nil)
				return err
			},
			"sweep": func() error {
				_, err := (&commands.Sweeper{Service: q.Service, Actor: actor, Grace: &none}).Sweep(t.Context())
				return err
			},
		} {
			var invalid *commands.InvalidError
			if err := do(); !errors.As(err, &invalid) || invalid.Field != "actor" || len(err.Error()) > 200 {
				t.Errorf("%s by %.20q: got %v, want an InvalidError of the actor", name, actor, err)
			}
		}
	}
	for _, w := range []event.Worker{{Boot: "b"}, {Name: "w"}, {Name: long, Boot: "b"},
		{Name: "w\xff", Boot: "b"}, {Name: "w", Boot: "b\xff"}, {Name: "w", Boot: "b", Host: "h\xff"},
		{Name: "w", Boot: "b", Version: "v\xff"}} {
		if err := q.WorkerStarted(t.Context(), w, []string{"mail"}, nil); !errors.Is(err, commands.ErrInvalid) {
			t.Errorf("%.20q of %q starts: got %v, want %v", w.Name, w.Host, err, commands.ErrInvalid)
		}
		if _, err := q.Claim(t.Context(), commands.ClaimRequest{Queues: []string{"mail"}, Worker: w}); !errors.Is(
			err, commands.ErrInvalid) {
			t.Errorf("%.20q of %q claims: got %v, want %v", w.Name, w.Host, err, commands.ErrInvalid)
		}
	}
	if got := q.Tail(); got != events {
		t.Errorf("%d events are left of what was refused", got-events)
	}
	if _, err := q.Pause(t.Context(), long[1:], "mail", ""); err != nil {
		t.Errorf("an actor of %d bytes: %v", commands.MaxActor, err)
	}
}

// An error gives the length of a text, not the text. Of several bad tags it always names the same one.
func TestValidateErrorsAreShort(t *testing.T) {
	long := strings.Repeat("é", 5000)
	tags := map[string]string{"z": long, "m": "fine", "c": long, "k": long}
	for _, test := range []struct {
		ask  commands.Enqueue
		want string
	}{
		{commands.Enqueue{Queue: long}, "queue of 10000 bytes is not allowed; allowed: 1 to 64 of a-z 0-9 . _ -"},
		{commands.Enqueue{Queue: "q", Key: long},
			"key of 10000 bytes is not allowed; allowed: up to 255 bytes of UTF-8 without NUL"},
		{commands.Enqueue{Queue: "q", Version: long},
			"version of 10000 bytes is not allowed; allowed: 1 to 64 printable ASCII characters without spaces"},
		{commands.Enqueue{Queue: "q", Requires: []string{"ok", long}},
			"requires of 10000 bytes is not allowed; allowed: 1 to 64 printable ASCII characters without spaces"},
		{commands.Enqueue{Queue: "q", Tags: tags},
			`tags: the value of "c" of 10000 bytes is not allowed; allowed: up to 255 bytes of UTF-8 without NUL`},
		{commands.Enqueue{Queue: "q", Tags: map[string]string{long: ""}},
			"tags of 10000 bytes is not allowed; allowed: up to 255 bytes of UTF-8 without NUL"},
	} {
		for range 20 {
			if err := test.ask.Check(); err == nil || err.Error() != test.want {
				t.Fatalf("got %v, want %s", err, test.want)
			}
		}
	}
}

// FuzzImportRoundTrip: everything that is accepted, in any field, survives an export and an import.
// Everything else gets an error that says what is wrong.
func FuzzImportRoundTrip(f *testing.F) {
	f.Add("cli:ada@host", "w1", "mail", "k", "v1", "gpu", "customer", "17", "because", []byte("payload"))
	f.Add("a\nb\x1b[2J\u202e", "w\ufffd\u2028", "a.b_c-9", "\x7f\u0085", "~!", "\"", "=", "", "\t",
		[]byte{0xff, 0})
	f.Add("", "", "", "", "", "", "", "", "", []byte(nil))
	f.Add("a\xff", "w\x00", "Mail", "k\xed\xa0\x80", "v 1", " ", "t\xff", "\x00", "\xff", []byte("\\ud800"))
	f.Add("a", "w", "mail", "k", "~\xb5", "l\xff", "t", "v", "r", []byte("p"))
	f.Add(strings.Repeat("a", 1025), strings.Repeat("w", 256), strings.Repeat("q", 65), strings.Repeat("k", 256),
		strings.Repeat("v", 65), "l", "t", strings.Repeat("é", 128), strings.Repeat("r", 1025), []byte("\ufeff"))
	f.Fuzz(func(t *testing.T, actor, worker, queue, key, version, label, tag, value, text string,
		payload []byte) {
		s := &commands.Service{Store: openFast(t)}
		accepted := func(err error) bool {
			if err != nil && !errors.Is(err, commands.ErrInvalid) {
				t.Fatal(err)
			}
			return err == nil
		}
		who := event.Worker{Name: worker, Boot: "boot", Host: text, Version: version}
		accepted(s.WorkerStarted(t.Context(), who, []string{"mail"}, []string{"gpu", label}))
		accepted(s.WorkerStarted(t.Context(), event.Worker{Name: "w", Boot: "other"}, []string{queue},
			[]string{label}))
		for _, ask := range []commands.Enqueue{{Queue: queue, Payload: payload},
			{Queue: "mail", Key: key, Payload: payload}, {Queue: "mail", Tags: map[string]string{tag: value}},
			{Queue: "mail", Version: version, Requires: []string{label}}} {
			made, err := s.Enqueue(t.Context(), actor, ask)
			if accepted(err) && (made[0].Queue != ask.Queue || made[0].Key != ask.Key ||
				made[0].Version != ask.Version || !slices.Equal(made[0].Requires, ask.Requires) ||
				!maps.Equal(made[0].Tags, ask.Tags)) {
				t.Fatalf("asked for %+v, got %+v", ask, made[0])
			}
		}
		_, err := s.Pause(t.Context(), actor, "other", text)
		accepted(err)
		claimed, err := s.Claim(t.Context(), commands.ClaimRequest{Queues: []string{"mail"}, Worker: who,
			Version: version, Capabilities: []string{label, "gpu"}[:1+len(label)%2], Limit: 9})
		accepted(err)
		for i, j := range claimed {
			for _, c := range []commands.Command{commands.Heartbeat{Token: j.Token, Lease: time.Minute, Note: text},
				[]commands.Command{commands.Release{Token: j.Token, Reason: text},
					commands.Fail{Token: j.Token, Code: label, Detail: text, Signal: version},
					commands.Succeed{Token: j.Token, Result: payload}, commands.Cancel{Reason: text}}[i%4]} {
				_, err := s.Apply(t.Context(), actor, j.ID, c)
				accepted(err)
			}
		}
		comesBack(t, s)
	})
}

// comesBack imports what s exports, and repeats that with the new ledger.
func comesBack(t *testing.T, s *commands.Service) {
	t.Helper()
	text := exported(t, s.Store)
	again := &commands.Service{Store: openFast(t)}
	if _, err := load.Import(t.Context(), again, "cli:test", "x", parsed(text), nil); err != nil {
		t.Fatalf("the export cannot be imported: %v\n%s", err, text)
	}
	if got := exported(t, again.Store); !bytes.HasPrefix(got, text) {
		t.Fatalf("exported\n%s\nimported and exported again\n%s", text, got)
	}
	for _, store := range []*ledger.Store{s.Store, again.Store} {
		err := store.Read(t.Context(), func(tx *ledger.Tx) error {
			v, err := audit.Verify(t.Context(), tx, nil)
			for _, f := range v.Findings {
				if f.Code == audit.FindPlace || f.Code == audit.FindUnfit {
					continue // the facts of these workers contradict each other
				}
				t.Errorf("verify: %+v", f)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
