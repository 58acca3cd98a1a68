package commands_test

import (
	"testing"

	"jobledger/commands"
	"jobledger/ledger/event"
)

// A heartbeat that comes late is recorded as refused where a zombie sent it, and else not.
func TestRefusedHeartbeatIsOfZombiesOnly(t *testing.T) {
	for name, test := range map[string]struct {
		end  func(q *queue, id event.JobID, token string)
		want error
		adds int64
	}{
		"after its own success": {func(q *queue, id event.JobID, token string) {
			q.do(q.fresh(id), commands.Succeed{Token: token})
		}, commands.ErrConflict, 0},
		"after its own failure": {func(q *queue, id event.JobID, token string) {
			q.do(q.fresh(id), commands.Fail{Token: token})
		}, commands.ErrConflict, 0},
		"after it released the job, and another has it": {func(q *queue, id event.JobID, token string) {
			q.do(q.fresh(id), commands.Release{Token: token})
			q.claimOne("other")
		}, commands.ErrConflict, 0},
		"after a cancel": {func(q *queue, id event.JobID, _ string) {
			if _, err := q.Cancel(t.Context(), "cli:test", id, ""); err != nil {
				t.Fatal(err)
			}
		}, commands.ErrCancelled, 0},
		"after its lease was taken back": {func(q *queue, id event.JobID, _ string) {
			q.Now = q.fresh(id).LeaseUntil
			q.sweep()
		}, commands.ErrLeaseLost, 1},
	} {
		t.Run(name, func(t *testing.T) {
			q := newQueue(t)
			q.enqueue(commands.Enqueue{MaxAttempts: 3})
			j := q.claimOne("w")
			test.end(q, j.ID, j.Token)
			before := q.Tail()
			q.refuses(j, beat(j.Token), test.want)
			q.refuses(j, beat(j.Token), test.want)
			if got := q.Tail() - before; got != test.adds {
				t.Errorf("%d events for a late heartbeat, want %d", got, test.adds)
			}
		})
	}
}
