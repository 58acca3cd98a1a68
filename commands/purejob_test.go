package commands_test

import (
	"testing"
	"time"

	"jobledger/commands"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
	"jobledger/projection"
)

// pureJob is one job without a database: Decide says what may happen, Envelope which event it is, and Evolve
// what the job is afterwards.
type pureJob struct {
	job    projection.Job
	events []event.Event
	now    time.Time
}

const pureID = event.JobID("01KDXYZAF8AAAAAAAAAAAAAAAA")

// newPureJob returns an enqueued job; change may alter the request.
func newPureJob(t testing.TB, change func(*commands.Enqueue)) *pureJob {
	t.Helper()
	s := &pureJob{now: ledgertest.Epoch, job: projection.Job{ID: pureID}}
	e := &commands.Enqueue{Queue: "mail", RunAt: s.now}
	if change != nil {
		change(e)
	}
	salt := []byte("salt")
	s.apply(t, commands.NewJob(e, pureID, salt))
	s.job.Salt = salt
	return s
}

func worker(name string) event.Worker { return event.Worker{Name: name, Boot: "boot-" + name} }

// record folds f as the write path does when it appends f.
func (s *pureJob) record(f commands.Fact) error {
	f.Actor = "cli:test"
	e, after, err := commands.Envelope(f, int64(len(s.events)+1), s.now)
	if err != nil {
		return err
	}
	s.job, s.events = after, append(s.events, e)
	return nil
}

// try decides c and folds the fact. It returns the body of the event.
func (s *pureJob) try(c commands.Action) (event.Body, error) {
	f, err := commands.Decide(s.job, c, s.now)
	if err != nil {
		return nil, err
	}
	return f.Body, s.record(f)
}

// apply is try for a command that must be allowed.
func (s *pureJob) apply(t testing.TB, cs ...commands.Action) *pureJob {
	t.Helper()
	for _, c := range cs {
		if _, err := s.try(c); err != nil {
			t.Fatalf("%T %+v on a job that is %s: %v", c, c, s.job.State, err)
		}
	}
	return s
}

func (s *pureJob) wait(d time.Duration) *pureJob {
	s.now = s.now.Add(d)
	return s
}

// refuse sends commands of an owner whose token is not live and folds the refusals.
func (s *pureJob) refuse(t testing.TB, cs ...commands.OwnerCommand) *pureJob {
	t.Helper()
	for _, c := range cs {
		f, _ := commands.DecideStale(s.job, s.past(c), c, s.now)
		if f.Body == nil { // a heartbeat that crosses the end of its claim
			continue
		}
		if err := s.record(f); err != nil {
			t.Fatalf("%T %+v: %v", c, c, err)
		}
	}
	return s
}

// past returns what the job's events say about c's token.
func (s *pureJob) past(c commands.OwnerCommand) (p commands.PastClaim) {
	p.Salt = s.job.Salt
	token, name := commands.Sender(c)
	for _, e := range s.events {
		p.Add(e, token, name, s.job)
	}
	return p
}

// report applies c, which says that the command of a claim has ended, and returns the facts.
func (s *pureJob) report(c commands.ReportStop) (facts []commands.Fact, err error) {
	var past commands.PastClaim
	for _, e := range s.events {
		past.Add(e, c.Token, "report_stop", s.job)
	}
	facts, err = commands.DecideStop(s.job, past, c, s.now)
	for i, f := range facts {
		if i > 0 {
			f.Job = s.job
		}
		if err := s.record(f); err != nil {
			return nil, err
		}
	}
	return facts, err
}
