package find

import (
	"fmt"

	"jobledger/projection"
)

// Forms is a hint at how a job may be named.
const Forms = "a job is its number (NO in list), its id, the beginning of it, its end as in …Q7ZK, last, " +
	"--key KEY -q QUEUE, or -q QUEUE --last"

// Ref names a job. Exactly one of ID, Key and Last is set; NO is what ID may be besides.
type Ref struct {
	ID    string // as it was typed
	NO    int64  // the number that ID is, for [Typed]; 0: it is none
	Key   string // in Queue; "" as Queue: in any, if it is in one only
	Last  bool   // the newest of Queue, or of all where Queue is ""
	Queue string

	until int64 // with Last: only jobs up to this number; 0: no limit
}

// String returns r as an error shows it.
func (r Ref) String() string {
	switch {
	case r.Last && r.Queue == "" && r.until > 0:
		return fmt.Sprintf("there was none yet at pos %d", r.until)
	case r.Last && r.Queue == "":
		return "there is none"
	case r.Last && r.until > 0:
		return fmt.Sprintf("queue %s had none yet at pos %d", r.Queue, r.until)
	case r.Last:
		return "queue " + r.Queue + " has none"
	case r.Key != "" && r.Queue != "":
		return fmt.Sprintf("none in queue %s has the key %q", r.Queue, r.Key)
	case r.Key != "":
		return fmt.Sprintf("none has the key %q", r.Key)
	}
	return r.ID
}

// AsOf is r where the newest job of a queue is the newest at m.
func (r Ref) AsOf(m projection.Moment) Ref {
	r.until = m.Pos
	return r
}
