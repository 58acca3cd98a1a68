package follow_test

import (
	"testing"

	"jobledger/ledger/event"
	"jobledger/projection/follow"
)

// Since when a job is ready, transition by transition. Times are small numbers.
func TestReady(t *testing.T) {
	const (
		none    = event.State(0)
		queued  = event.Queued
		blocked = event.Blocked
		claimed = event.ClaimedState
		final   = event.CancelledState
	)
	type step struct {
		from, to event.State
		at, due  int64
		want     int64
	}
	for name, steps := range map[string][]step{
		"at once":                             {{none, queued, 10, 10, 10}, {queued, claimed, 12, 0, 0}},
		"for later":                           {{none, queued, 10, 30, 30}},
		"a dependent job whose time has come": {{none, blocked, 10, 10, 0}, {blocked, queued, 20, 0, 20}},
		"a dependent job for later":           {{none, blocked, 10, 30, 0}, {blocked, queued, 20, 0, 30}},
		"a dependent job that was postponed": {{none, blocked, 10, 10, 0}, {blocked, blocked, 12, 40, 0},
			{blocked, queued, 20, 0, 40}},
		"another priority":                         {{none, queued, 10, 10, 10}, {queued, queued, 15, 10, 10}},
		"another priority of a job for later":      {{none, queued, 10, 30, 30}, {queued, queued, 15, 30, 30}},
		"another payload":                          {{none, queued, 10, 12, 12}, {queued, queued, 15, 0, 12}},
		"a ready job that is to run now":           {{none, queued, 10, 10, 10}, {queued, queued, 15, 15, 10}},
		"a ready job that is postponed":            {{none, queued, 10, 10, 10}, {queued, queued, 15, 40, 40}},
		"a job for later that is to run now":       {{none, queued, 10, 30, 30}, {queued, queued, 15, 15, 15}},
		"a job for later that was to run long ago": {{none, queued, 10, 30, 30}, {queued, queued, 15, 5, 15}},
		"a failed attempt": {{none, queued, 10, 10, 10}, {queued, claimed, 11, 0, 0}, {claimed, queued, 20, 50, 50},
			{queued, queued, 60, 0, 50}},
		"a cancelled job for later that is retried": {{none, queued, 10, 90, 90}, {queued, final, 20, 0, 0},
			{final, queued, 30, 30, 30}},
	} {
		var r follow.Ready
		for i, s := range steps {
			r.Add(s.from, s.to, s.at, s.due)
			if r.At() != s.want {
				t.Errorf("%s: after step %d the job is ready at %d, want %d", name, i+1, r.At(), s.want)
			}
		}
	}
}
