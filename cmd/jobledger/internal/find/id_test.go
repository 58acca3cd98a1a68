package find

import (
	"errors"
	"strings"
	"testing"

	"jobledger/cmd/jobledger/internal/fault"
	"jobledger/commands"
	"jobledger/ledger"
	"jobledger/ledger/ledgertest"
	"jobledger/projection"
)

func TestRefFind(t *testing.T) {
	s := &commands.Service{Store: ledgertest.Open(t)}
	done, err := s.Enqueue(t.Context(), "cli:test", commands.Enqueue{Queue: "mail", Key: "invoice-1"},
		commands.Enqueue{Queue: "mail", Key: "invoice-2"}, commands.Enqueue{Queue: "web", Key: "invoice-2"})
	if err != nil {
		t.Fatal(err)
	}
	ids := make([]string, len(done))
	for i, j := range done {
		ids[i] = string(j.ID)
	}
	tests := []struct {
		ref  Ref
		want string // the id, or a part of the error
		err  int    // exit code; 0: found
	}{
		{Ref{ID: ids[0]}, ids[0], 0},
		{Ref{ID: strings.ToLower(ids[1])}, ids[1], 0},
		{Ref{ID: "…" + ids[2][20:]}, ids[2], 0},
		{Ref{ID: "..." + strings.ToLower(ids[2][20:])}, ids[2], 0},
		{Ref{Key: "invoice-1"}, ids[0], 0},
		{Ref{Key: "invoice-2", Queue: "web"}, ids[2], 0},
		{Ref{Last: true, Queue: "mail"}, ids[1], 0},
		{Ref{ID: ids[0][:4]}, "is the beginning of several ids, among them " + ids[0] + " (queued in mail)",
			fault.ExitUsage},
		{Ref{Key: "invoice-2"}, `"invoice-2" is a key in several queues`, fault.ExitUsage},
		{Ref{ID: "invoice-1"}, `"invoice-1" is not a job id`, fault.ExitUsage},
		{Ref{ID: "…K3"}, "give at least its last 4 characters", fault.ExitUsage},
		{Ref{ID: "7ZZZZZZZZZ"}, "7ZZZZZZZZZ", fault.ExitNoJob},
		{Ref{Key: "invoice-3"}, `none has the key "invoice-3"`, fault.ExitNoJob},
		{Ref{Key: "invoice-1", Queue: "web"}, `none in queue web has the key "invoice-1"`, fault.ExitNoJob},
		{Ref{Last: true, Queue: "mial"}, "queue mial has none", fault.ExitNoJob},
	}
	for _, tt := range tests {
		j, err := tt.ref.Read(t.Context(), s)
		if tt.err == 0 {
			if err != nil || string(j.ID) != tt.want {
				t.Errorf("%+v: got %s, %v, want %s", tt.ref, j.ID, err, tt.want)
			}
			continue
		}
		if code, text, _ := fault.Explain(err); code != tt.err || !strings.Contains(text, tt.want) {
			t.Errorf("%+v: got %d %q, want %d %q", tt.ref, code, text, tt.err, tt.want)
		}
	}
	_, err = Ref{Last: true, Queue: "mial"}.Read(t.Context(), s)
	if _, _, hint := fault.Explain(err); hint != "queue mial has never had a job; did you mean mail?" {
		t.Errorf("the hint at a misspelt queue: got %q", hint)
	}
	_, err = Ref{Last: true, Queue: "web"}.AsOf(projection.Moment{Pos: 2}).Read(t.Context(), s)
	if !errors.Is(err, commands.ErrNoJob) {
		t.Errorf("the last of web before its first: got %v, want %v", err, commands.ErrNoJob)
	}
	err = s.Store.Read(t.Context(), func(tx *ledger.Tx) error {
		n, err := Ref{ID: ids[2]}.Number(t.Context(), tx)
		if n != 3 {
			t.Errorf("number of the third job: got %d, want 3", n)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func TestUnusedQueuesNamesTheNearest(t *testing.T) {
	s := &commands.Service{Store: ledgertest.Open(t)}
	if _, err := s.Enqueue(t.Context(), "cli:test", commands.Enqueue{Queue: "mail"}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Pause(t.Context(), "cli:test", "mai", ""); err != nil {
		t.Fatal(err)
	}
	got, err := UnusedQueues(t.Context(), s.Store, []string{"mail", "mai", "thumbnails"})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"queue mai has never had a job; did you mean mail?", "queue thumbnails has never had a job"}
	if len(got) != 2 || got[0].String() != want[0] || got[1].String() != want[1] {
		t.Errorf("got %v, want %q", got, want)
	}
}
