package audit

import (
	"jobledger/ledger/event"
	"jobledger/projection"
)

// keyHolders has the numbers of the jobs with a key that is not for ever.
type keyHolders map[uniqueKey]int64

type uniqueKey struct{ queue, key string }

// hasKey reports whether j has a key that is not for ever.
func hasKey(j *projection.Job) bool { return j != nil && j.UniqueWhile != "" && !j.KeyFree }

// key reports a job that gets a key which another one has. had is hasKey of j before e. Jobs that got their
// key before the first checked event are not known.
func (v *verifier) key(e *event.Event, j *projection.Job, had bool) {
	has := hasKey(j)
	forEver := len(v.keys) > 0 && e.Kind() == event.KindEnqueued && j.Key != "" && j.UniqueWhile == ""
	if had == has && !forEver {
		return
	}
	key := uniqueKey{j.Queue, j.Key}
	holder, taken := v.keys[key]
	switch {
	case had && holder == j.N:
		delete(v.keys, key)
	case had:
	case taken:
		v.at(e, FindKey, "it gets the key %q, which the job of event %d has", j.Key, holder)
	case has:
		v.keys[key] = j.N
	}
}
