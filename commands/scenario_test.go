package commands_test

import (
	"testing"
	"time"

	"jobledger/commands"
	"jobledger/ledger"
	"jobledger/ledger/ledgertest"
	"jobledger/projection"
)

// story is one job without a database: Decide says what may happen, Evolve what it means.
type story struct {
	job    projection.Job
	events []ledger.Event
	now    time.Time
	salt   []byte
}

const storyID = ledger.JobID("01KDXYZAF8AAAAAAAAAAAAAAAA")

// newStory begins with an enqueued job; change may alter what is asked for.
func newStory(t testing.TB, change func(*ledger.Enqueued)) *story {
	t.Helper()
	s := &story{now: ledgertest.Epoch, salt: []byte("salt")}
	b := &ledger.Enqueued{Queue: "mail", RunAt: s.now, MaxAttempts: projection.DefaultMaxAttempts, PayloadSHA256: ledger.Digest(s.salt, nil)}
	if change != nil {
		change(b)
	}
	if err := s.add(ledger.Event{Seq: 1, Body: b}); err != nil {
		t.Fatal(err)
	}
	return s
}

func worker(name string) ledger.Worker { return ledger.Worker{Name: name, Boot: "boot-" + name} }

// add folds e as the live path would append it.
func (s *story) add(e ledger.Event) error {
	e.Pos, e.N, e.Job, e.At, e.Actor = int64(len(s.events)+1), 1, storyID, s.now, "cli:test"
	if e.Seq != 0 {
		e.From = s.job.State
	}
	after, err := projection.Evolve(s.job, e)
	if err != nil {
		return err
	}
	if e.Seq != 0 {
		e.To = after.State
	}
	s.job, s.events = after, append(s.events, e)
	return nil
}

// try decides c and folds what comes of it.
func (s *story) try(c commands.Command) ([]ledger.Body, error) {
	bodies, err := commands.Decide(s.job, c, s.now)
	if err != nil {
		return nil, err
	}
	for _, body := range bodies {
		e := ledger.Event{Seq: s.job.Seq + 1, Body: body}
		if s.job.State.Held() {
			e.Worker, e.Token, e.Attempt = s.job.Worker, s.job.Token, s.job.Attempt
		}
		if body.Kind() == ledger.KindErased {
			e.Seq, s.salt = 0, nil
		}
		if claim, ok := c.(commands.Claim); ok {
			e.Worker, e.Token, e.Attempt = claim.Worker, claim.Token, s.job.Attempt+1
		}
		if succeed, ok := c.(commands.Succeed); ok && succeed.Result != nil {
			body.(*ledger.Succeeded).ResultSHA256 = ledger.Digest(s.salt, succeed.Result)
		}
		if err := s.add(e); err != nil {
			return bodies, err
		}
	}
	return bodies, nil
}

// tell is try for what must be allowed.
func (s *story) tell(t testing.TB, cs ...commands.Command) *story {
	t.Helper()
	for _, c := range cs {
		if _, err := s.try(c); err != nil {
			t.Fatalf("%T %+v on a job that is %s: %v", c, c, s.job.State, err)
		}
	}
	return s
}

func (s *story) wait(d time.Duration) *story {
	s.now = s.now.Add(d)
	return s
}

func (s *story) erase(t testing.TB) *story {
	t.Helper()
	if err := s.add(ledger.Event{Body: &ledger.Erased{Bodies: 1, Reason: "asked for"}}); err != nil {
		t.Fatal(err)
	}
	s.salt = nil
	return s
}

// past is what the job's events say about a token and a command.
func (s *story) past(token, command string) (p commands.Past) {
	p.Salt = s.salt
	for _, e := range s.events {
		switch b := e.Body.(type) {
		case *ledger.Claimed:
			p.Latest = e.Token == token
			if p.Latest {
				p.Claim = &e
			}
		case *ledger.Refused:
			p.Refused = p.Refused || e.Token == token && b.Command == command
		default:
			if p.Claim != nil && e.Kind().EndsClaim() && e.Token == token {
				p.Ending = &e
			}
		}
	}
	return p
}
