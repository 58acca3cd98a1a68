package web

import (
	"context"
	"sync"
	"time"

	"jobledger/commands"
	"jobledger/commands/schedule"
)

// sweepEvery is how often expired leases are looked for, as a worker does it.
const sweepEvery = 15 * time.Second

// sweeper takes jobs back from workers whose lease has run out, enqueues what schedules make due, and carries
// out the archive policy, as each worker that has opened the ledger does: workers over HTTP cannot. It begins
// with the first request of a worker.
type sweeper struct {
	service *commands.Service
	actor   string
	report  func(format string, args ...any)
	also    func(context.Context) error // at the end of each sweep; nil: nothing

	mu      sync.Mutex
	ctx     context.Context // of the server; nil before it serves
	running sync.WaitGroup
	begun   bool
}

// serve lets the sweeper begin until ctx ends.
func (s *sweeper) serve(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ctx = ctx
}

// busy takes in that a worker is there.
func (s *sweeper) busy() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.begun || s.ctx == nil || s.ctx.Err() != nil {
		return
	}
	s.begun = true
	ctx := s.ctx
	s.running.Go(func() {
		w := commands.Sweeper{Service: s.service, Actor: s.actor, Also: s.also}
		w.Run(ctx, sweepEvery, func(_ commands.SweepReport, err error) {
			if err != nil && ctx.Err() == nil {
				s.report("sweep: %v", err)
			}
		})
	})
	s.running.Go(func() {
		t := schedule.Ticker{Service: s.service, Actor: s.actor, Poll: 5 * time.Second}
		t.Run(ctx, func(_ schedule.Ticked, err error) {
			if err != nil && ctx.Err() == nil {
				s.report("schedules: %v", err)
			}
		})
	})
}

// wait waits until the sweeper has ended, after the context of serve has.
func (s *sweeper) wait() { s.running.Wait() }
