package commands_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"jobledger/commands"
	"jobledger/commands/argv"
	"jobledger/ledger/event"
	"jobledger/projection/defaults"
)

func carried(t *testing.T, args ...string) []byte {
	t.Helper()
	payload, err := argv.Form{Argv: args, Dir: "/"}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return payload
}

func (q *queue) setCommands(on bool) (changed bool) {
	q.T.Helper()
	changed, err := q.SetCommands(q.T.Context(), "cli:test", "mail", on, "")
	if err != nil {
		q.T.Fatal(err)
	}
	return changed
}

// Jobs that carry their commands are in queues for them, other jobs are in other queues, and only a worker
// that is for commands takes the former, and nothing else.
func TestFormOfJobs(t *testing.T) {
	q := newQueue(t)
	plain := q.enqueue(commands.Enqueue{Payload: []byte("p")})
	ask := commands.Enqueue{Queue: "mail", Form: event.FormArgv, Payload: carried(t, "true"), Key: "k"}
	refused := func(why string, e commands.Enqueue, allowed string) {
		t.Helper()
		tail := q.Tail()
		_, err := q.Enqueue(t.Context(), "cli:test", e)
		invalid, ok := errors.AsType[*commands.InvalidError](err)
		if !ok || !strings.Contains(invalid.Allowed, allowed) || q.Tail() != tail {
			t.Errorf("%s: %v, and %d events", why, err, q.Tail()-tail)
		}
	}
	refused("a command in a queue for others", ask, "queue set -q mail --commands")
	if !q.setCommands(true) || q.setCommands(true) {
		t.Error("the first time changes something, the second does not")
	}
	q.setDefaults(defaults.Spec{MaxAttempts: 3}) // leaves it as it is
	refused("a job without a command", commands.Enqueue{Queue: "mail"}, "without a command")
	refused("no command", commands.Enqueue{Queue: "mail", Form: event.FormArgv, Payload: []byte("true\n")},
		"package argv")
	refused("no form", commands.Enqueue{Queue: "mail", Form: "sh"}, event.FormArgv)
	j := q.enqueue(ask)
	if j.Form != event.FormArgv || !slices.Equal(j.Requires, []string{event.LabelArgv}) || j.MaxAttempts != 3 {
		t.Errorf("%+v", j)
	}
	if again := q.enqueue(ask); again.ID != j.ID {
		t.Errorf("%s is not %s", again.ID, j.ID)
	}
	labels := []string{event.LabelArgv}
	if err := commands.ReservedLabel("requires", labels); err == nil {
		t.Error("a person may ask for a reserved label")
	}

	// A worker of other jobs takes the plain one, and then nothing.
	if got := q.claimOne("w"); got.ID != plain.ID {
		t.Errorf("claimed %s", got.ID)
	}
	if got := q.claim("w"); len(got) > 0 {
		t.Errorf("claimed %s", got[0].ID)
	}
	q.setCommands(false)
	plain = q.enqueue(commands.Enqueue{Payload: []byte("p")})
	got, err := q.Claim(t.Context(), commands.ClaimRequest{Queues: []string{"mail"}, Capabilities: labels,
		Worker: event.Worker{Name: "w2", Boot: "b2"}, Limit: 5})
	if err != nil || len(got) != 1 || got[0].ID != j.ID || string(got[0].Payload) != string(ask.Payload) {
		t.Errorf("claimed %+v, %v", got, err)
	}
	q.do(got[0], commands.Release{Token: got[0].Token})

	// An edit keeps the label, whatever it says of the others.
	j = q.do(j, commands.Edit{Requires: []string{"gpu"}})
	if !slices.Equal(j.Requires, []string{"gpu", event.LabelArgv}) {
		t.Errorf("it requires %q", j.Requires)
	}
}
