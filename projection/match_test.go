package projection_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
	"jobledger/projection"
	"jobledger/projection/internal/historytest"
)

// TestListMatches compares what List and ListAsOf find by each aspect of a job, and by its opposite, at every
// pos of a history, with what the events up to there say.
func TestListMatches(t *testing.T) {
	s := ledgertest.Open(t)
	historytest.Record(t, s, historytest.Read(t, "v1.jsonl"))
	ctx := t.Context()
	found := make(map[projection.Aspect]int)
	err := s.Read(ctx, func(tx *ledger.Tx) error {
		tail, err := tx.Tail(ctx)
		if err != nil {
			return err
		}
		past := make(map[int64][]event.Event) // of each job
		for e, err := range tx.Events(ctx, ledger.Filter{}) {
			if err != nil {
				return err
			}
			n, err := tx.Number(ctx, e.Job)
			if err != nil {
				return err
			}
			if n > 0 {
				past[n] = append(past[n], e)
			}
			m, err := projection.AtPos(ctx, tx, e.Pos)
			if err != nil {
				return err
			}
			all, err := projection.ListAsOf(ctx, tx, projection.Filter{}, m)
			if err != nil {
				return err
			}
			for _, match := range matchesOf(all, e) {
				var want, got, now []int64
				for _, j := range all {
					if matchedBy(match, j.Job, past[j.N]) != match.Not {
						want = append(want, j.N)
					}
				}
				f := projection.Filter{Match: []projection.Match{match}}
				then, err := projection.ListAsOf(ctx, tx, f, m)
				if err != nil {
					return err
				}
				for _, j := range then {
					got = append(got, j.N)
				}
				if !slices.Equal(got, want) {
					t.Errorf("pos %d, %+v: %v, want %v", e.Pos, match, got, want)
				}
				found[match.Of] += len(want)
				if e.Pos != tail {
					continue
				}
				jobs, err := projection.List(ctx, tx, f)
				if err != nil {
					return err
				}
				for _, j := range jobs {
					now = append(now, j.N)
				}
				if !slices.Equal(now, want) {
					t.Errorf("now, %+v: %v, want %v", match, now, want)
				}
				f.Limit = 1
				if jobs, err = projection.List(ctx, tx, f); err != nil || len(jobs) != min(1, len(want)) {
					t.Errorf("now, one of %+v: %v, %v, want of %v", match, jobs, err, want)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for a := projection.OfWord; a < projection.OfPayload; a++ { // of payloads TestSearchFindsPayloads knows
		if found[a] == 0 {
			t.Errorf("nothing was found by aspect %d: the history does not test it", a)
		}
	}
}

// matchesOf are conditions that some of the jobs meet, and their opposites.
func matchesOf(all []projection.Then, e event.Event) (matches []projection.Match) {
	add := func(of projection.Aspect, values ...any) {
		matches = append(matches, projection.Match{Of: of, Values: values},
			projection.Match{Of: of, Values: values, Not: true})
	}
	add(projection.OfKind, int64(e.Kind()))
	add(projection.OfActor, e.Actor, "nobody")
	add(projection.OfPos, e.Pos, int64(math.MaxInt64))
	person, _, _ := strings.Cut(e.Actor[strings.Index(e.Actor, ":")+1:], "@")
	add(projection.OfPerson, "nobody", person)
	add(projection.OfWorker, "nobody", e.Worker.Name)
	add(projection.OfOwner, "nobody", e.Worker.Name)
	add(projection.OfHost, "nowhere", e.Worker.Host)
	if b, ok := e.Body.(*event.Failed); ok {
		add(projection.OfCode, b.ErrorCode, "none")
		if b.ExitCode != nil {
			add(projection.OfExit, int64(*b.ExitCode), int64(200))
		}
	}
	if b, ok := e.Body.(*event.Reclaimed); ok {
		add(projection.OfCode, b.Reason)
	}
	if len(all) == 0 {
		return matches
	}
	j := all[int(e.Pos)%len(all)]
	add(projection.OfID, strings.ToLower(string(j.ID)))
	add(projection.OfQueue, j.Queue)
	add(projection.OfState, j.State.String(), event.Queued.String())
	add(projection.OfKey, j.Key)
	add(projection.OfError, j.ErrorCode)
	add(projection.OfGroup, j.Group)
	add(projection.OfVersion, j.Version)
	add(projection.OfSchedule, j.Schedule)
	if d := j.ErrorDetail; d != "" {
		add(projection.OfText, d[1:])
		add(projection.OfWord, d[1:])
	}
	add(projection.OfWord, string(j.ID[:20]), j.Queue[1:])
	for name, value := range j.Tags {
		add(projection.OfTag, name+"="+value)
		add(projection.OfTag, name)
		add(projection.OfWord, value)
		add(projection.OfWord, name+"="+value)
	}
	return matches
}

// isBy reports whether person is in actor, as in worker:person or cli:person@host.
func isBy(actor, person string) bool {
	name, _, _ := strings.Cut(actor, "@")
	return person != "" && (name == person || strings.HasSuffix(name, ":"+person))
}

// matchedBy reports whether j, which has these events, has one of the values of m.
func matchedBy(m projection.Match, j projection.Job, past []event.Event) bool {
	return slices.ContainsFunc(m.Values, func(v any) bool {
		text, _ := v.(string)
		var owner event.Worker
		once, coded, exit := false, false, int64(math.MinInt64)
		for _, e := range past {
			switch b := e.Body.(type) {
			case *event.Claimed, *event.TakenOver:
				owner, once = e.Worker, once || e.Worker.Name != "" && e.Worker.Name == text
			case *event.Failed:
				if exit = math.MinInt64; b.ExitCode != nil {
					exit = int64(*b.ExitCode)
				}
				coded = coded || b.ErrorCode == text
			case *event.Reclaimed:
				exit, coded = math.MinInt64, coded || b.Reason == text
			case *event.Succeeded, *event.Retried:
				exit = math.MinInt64
			}
			if m.Of == projection.OfKind && int64(e.Kind()) == v || m.Of == projection.OfActor && e.Actor == text ||
				m.Of == projection.OfPos && e.Pos == v || m.Of == projection.OfPerson && isBy(e.Actor, text) {
				return true
			}
		}
		words := []string{j.Queue, j.Key, j.Group, j.ErrorCode, j.ErrorDetail}
		tagged := false
		for name, value := range j.Tags {
			words = append(words, name, value, name+"="+value)
			tagged = tagged || text == name || text == name+"="+value
		}
		whole := strings.HasPrefix(string(j.ID), strings.ToUpper(text))
		switch m.Of {
		case projection.OfWorker:
			return once
		case projection.OfOwner:
			return owner.Name != "" && owner.Name == text
		case projection.OfHost:
			return owner.Name != "" && owner.Host == text
		case projection.OfExit:
			return exit == v
		case projection.OfCode:
			return coded
		case projection.OfText:
			return strings.Contains(j.ErrorDetail, text)
		case projection.OfGroup:
			return j.Group == text
		case projection.OfVersion:
			return j.Version == text
		case projection.OfSchedule:
			return j.Schedule == text
		case projection.OfID:
			return whole
		case projection.OfTag:
			return tagged
		case projection.OfQueue, projection.OfState, projection.OfKey, projection.OfError:
			return text == map[projection.Aspect]string{projection.OfQueue: j.Queue, projection.OfKey: j.Key,
				projection.OfState: j.State.String(), projection.OfError: j.ErrorCode}[m.Of]
		case projection.OfWord:
			return whole && len(text) >= 6 || strings.Contains(strings.Join(words, "\n"), text)
		}
		return false
	})
}
