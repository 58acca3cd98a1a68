package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"jobledger/cmd/jobledger/internal/state"
	"jobledger/commands"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
	"jobledger/projection"
	"jobledger/projection/query"
	"jobledger/projection/status"
	"jobledger/projection/verdict"
)

// TestServiceIsOneDefinition compares whether doctor, why and status say that a queue is served, 24 minutes
// after the last claim from it.
func TestServiceIsOneDefinition(t *testing.T) {
	who := event.Worker{Name: "w", Boot: "01KDY9FY88TH00000000000011", Host: "alpha", PID: 7}
	for _, tt := range []struct {
		name                        string
		announced, stopped, present bool
		served                      bool
		says                        string
	}{
		{"present", true, false, true, true, ""},
		{"silent", true, false, false, false, "went silent"},
		{"stopped", true, true, false, false, "workers stopped"},
		{"unannounced", false, false, false, true, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			now := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
			store := ledgertest.Open(t)
			store.Now = func() time.Time { return now }
			s := &commands.Service{Store: store}
			check := func(err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
			}
			if tt.announced {
				check(s.WorkerStarted(t.Context(), who, []string{"mail"}, nil))
			}
			one := commands.Enqueue{Queue: "mail"}
			_, err := s.Enqueue(t.Context(), "cli:test", one)
			check(err)
			request := commands.ClaimRequest{Queues: []string{"mail"}, Worker: who, Limit: 1}
			claimed, err := s.Claim(t.Context(), request)
			check(err)
			_, err = s.Apply(t.Context(), "worker:w", claimed[0].ID, commands.Succeed{Token: claimed[0].Token})
			check(err)
			waiting, err := s.Enqueue(t.Context(), "cli:test", one)
			check(err)
			if tt.stopped {
				check(s.WorkerStopped(t.Context(), who))
			}
			now = now.Add(24 * time.Minute)
			if tt.present {
				check(s.Present(t.Context(), who))
			}
			err = store.Read(t.Context(), func(tx *ledger.Tx) error {
				problems, err := query.Problems{At: projection.Now(now)}.Read(t.Context(), tx)
				check(err)
				i := slices.IndexFunc(problems, func(p verdict.Problem) bool { return p.Code == verdict.Stranded })
				served := i < 0
				if served != tt.served || !served && !strings.Contains(state.Say(problems[i], now).Text, tt.says) {
					t.Errorf("doctor: %+v", problems)
				}
				why, err := state.Explain(t.Context(), tx, waiting[0].Job, query.Past{}, now)
				check(err)
				served = !strings.Contains(why.Why, "No worker is") || strings.Contains(why.Why, "did not announce")
				if served != tt.served || !strings.Contains(why.Why, tt.says) {
					t.Errorf("why: %s", why.Why)
				}
				queues, err := status.Queues{At: projection.Now(now), Stranded: true}.Read(t.Context(), tx)
				check(err)
				if len(queues[0].Stranded) > 0 == tt.served {
					t.Errorf("status: %+v", queues[0].Stranded)
				}
				concern := state.Concerns(queues[0], now)[0]
				served = concern.Level < state.Problem
				if served != tt.served || !strings.Contains(concern.Text, tt.says) {
					t.Errorf("status: %+v", concern)
				}
				return nil
			})
			check(err)
		})
	}
}
