package commands_test

import (
	"errors"
	"testing"
	"time"

	"jobledger/commands"
)

func TestOwnerMustHoldTheClaim(t *testing.T) {
	q := newQueue(t)
	q.enqueue(commands.Enqueue{})
	j := q.claimOne("w1")
	asked := func(owner string) []commands.Command {
		return []commands.Command{
			commands.Heartbeat{Token: j.Token, Owner: owner, Lease: time.Minute},
			commands.Release{Token: j.Token, Owner: owner},
			commands.Fail{Token: j.Token, Owner: owner},
			commands.Succeed{Token: j.Token, Owner: owner},
		}
	}
	for _, c := range asked("w2") {
		if _, err := q.Apply(t.Context(), "cli:test", j.ID, c); !errors.Is(err, commands.ErrConflict) {
			t.Errorf("%T as w2: got %v, want a conflict", c, err)
		}
	}
	for _, owner := range []string{"w1", ""} { // the second time, succeed is repeated
		if _, err := q.Apply(t.Context(), "cli:test", j.ID, asked(owner)[3]); err != nil {
			t.Errorf("succeed as %q: %v", owner, err)
		}
	}
	if _, err := q.Apply(t.Context(), "cli:test", j.ID, asked("w2")[3]); !errors.Is(err, commands.ErrConflict) {
		t.Errorf("the same succeed as w2: got %v, want a conflict", err)
	}
	if got := q.kinds(j.ID); len(got) != 3 {
		t.Errorf("events: %v, want enqueued, claimed, succeeded", got)
	}
}

func TestCheckKeysFindsTheConflictThatEnqueueWouldMeet(t *testing.T) {
	q := newQueue(t)
	q.enqueue(commands.Enqueue{Key: "k", Payload: []byte("a")})
	same, other := commands.Enqueue{Queue: "mail", Key: "k", Payload: []byte("a")},
		commands.Enqueue{Queue: "mail", Key: "k", Payload: []byte("b")}
	elsewhere := commands.Enqueue{Queue: "sms", Key: "k", Payload: []byte("b")}
	if i, err := q.CheckKeys(t.Context(), []commands.Enqueue{same, elsewhere}); i != -1 || err != nil {
		t.Errorf("without a conflict: got %d, %v", i, err)
	}
	if i, err := q.CheckKeys(t.Context(), []commands.Enqueue{same, other}); i != 1 ||
		!errors.Is(err, commands.ErrConflict) {
		t.Errorf("with a conflict: got %d, %v", i, err)
	}
}
