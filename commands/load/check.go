package load

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/oklog/ulid/v2"

	"jobledger/commands"
	"jobledger/ledger"
	"jobledger/ledger/event"
)

// checkLine checks line n on its own. The tables and the claims depend on these checks: a history may come
// from anywhere.
func checkLine(n int64, l *event.Line) error {
	switch {
	case n == 1 && l.Pos != 1:
		return fmt.Errorf("the history begins with event %d; only one that begins with event 1 can be taken in",
			l.Pos)
	case l.Pos != n:
		return fmt.Errorf("it is event %d, but event %d should follow here", l.Pos, n)
	case l.Actor == "":
		return errors.New("actor is missing")
	}
	for field, text := range map[string]string{"actor": l.Actor, "worker": l.Worker.Name, "token": l.Token,
		"host": l.Worker.Host, "boot": l.Worker.Boot} {
		if err := commands.CheckText(field, text, commands.MaxReason); err != nil {
			return err
		}
	}
	if err := checkEnvelope(l); err != nil {
		return err
	}
	e, enqueued := l.Event.Body.(*event.Enqueued)
	if enqueued {
		if id, err := ulid.ParseStrict(string(l.Job)); err != nil || id.String() != string(l.Job) {
			return &commands.InvalidError{Field: "job", Got: fmt.Sprintf("%.80q", l.Job),
				Allowed: "a ULID in capitals"}
		}
	} else if err := commands.CheckSize(cmp.Or(event.BodyKey(l.Kind()), "result"), l.Body); err != nil {
		return err
	}
	if field := missingField(l); field != "" {
		return fmt.Errorf("%s of %s is missing", field, l.Kind())
	}
	if enqueued {
		return checkEnqueued(l, e)
	}
	return nil
}

// checkEnvelope checks that the event has the parts of its kind, and no others. Whether they follow from the
// events before is for projection.Evolve to judge.
func checkEnvelope(l *event.Line) error {
	kind := l.Kind()
	ofJob, inSequence := kind.OfJob(), kind.HasSeq()
	switch {
	case ofJob && l.Job == "":
		return fmt.Errorf("%s without a job", kind)
	case !ofJob && l.Job != "":
		return fmt.Errorf("%s concerns no job, but names %s", kind, l.Job)
	case inSequence && l.Seq == 0:
		return fmt.Errorf("%s without a seq", kind)
	case !inSequence && l.Seq != 0:
		return fmt.Errorf("%s with seq %d; it changes no job and has none", kind, l.Seq)
	case !inSequence && (l.From != 0 || l.To != 0):
		return fmt.Errorf("%s with a state; it changes none", kind)
	case inSequence && l.To == 0:
		return fmt.Errorf("%s without a to_state", kind)
	case !ofJob && (l.Attempt != 0 || l.Token != ""):
		return fmt.Errorf("%s with a claim; it concerns no job", kind)
	}
	return nil
}

// missingField names the first required field that the event lacks; "" if it has all. Heartbeats and ends of
// claims are completed from the claim.
func missingField(l *event.Line) string {
	kind := l.Kind()
	switch {
	case (kind.ShowsProcess() || kind.AfterClaim()) && l.Worker.Name == "":
		return "worker"
	case kind.StoresToken() && l.Token == "":
		return "token"
	case kind.ShowsProcess() && l.Worker.Boot == "":
		return "boot"
	}
	return event.MissingField(l.Event.Body)
}

// checkEnqueued applies the checks of Enqueue: the job's lane and key are made of these fields.
func checkEnqueued(l *event.Line, b *event.Enqueued) error {
	as := commands.Enqueue{Queue: b.Queue, Payload: l.Body, Key: b.Key, Priority: b.Priority, RunAt: b.RunAt,
		MaxAttempts: b.MaxAttempts, MaxRuntime: b.MaxRuntime, Version: b.Version, Requires: b.Requires,
		Tags: b.Tags, Group: b.Group, Backoff: b.Backoff, UniqueWhile: b.UniqueWhile}
	if l.Body != nil {
		as.Form = b.Form
	}
	if err := as.Check(); err != nil {
		return err
	}
	if l.Body == nil {
		return nil
	}
	if int64(len(l.Body)) != b.PayloadBytes || ledger.Digest(l.Salt, l.Body) != b.PayloadSHA256 {
		return fmt.Errorf("its payload of %d bytes is not the one of %d bytes whose digest it names",
			len(l.Body), b.PayloadBytes)
	}
	return nil
}
