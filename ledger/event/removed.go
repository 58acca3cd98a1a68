package event

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"jobledger/ledger/jsonscan"
)

// ledgerIDBytes is how many bytes the id of a ledger has.
const ledgerIDBytes = 16

// Removed: jobs that had ended left the ledger's database with all their events, which are in segment files.
// Or it records that the payload and result of such a job, which had been kept, were erased.
type Removed struct {
	Hi        int64  `event:"hi,min=256"` // up to this event; their segments end here, or before
	Jobs      int64  `event:"jobs"`       // jobs that left
	Events    int64  `event:"events"`     // of these jobs
	Bodies    int64  `event:"bodies"`     // payloads and results, which are in no segment file
	BodyBytes int64  `event:"bytes"`      // of these payloads and results
	Keys      int64  `event:"keys"`       // of the jobs' keys, those that stay theirs for ever
	More      bool   `event:"more"`       // there were more jobs to remove
	Reason    string `event:"reason"`
	// payloads and results of these jobs that stay, where erase reaches them
	Kept int64 `event:"kept"`
	// instead of jobs that leave, one job that has left: Bodies and BodyBytes are what was erased, besides the
	// salt of its key; "": none
	Erased JobID `event:"erased"`
	// the id of the ledger, where its first event left; 32 digits in hex
	Ledger string `event:"ledger"`
	// jobs by queue, in the order of the names: [["mail",120,60,11]] are 120 that had succeeded, 60 failed and
	// 11 cancelled; none: an older program did not say
	Left []Left `event:"left"`
}

// Left is how many jobs of a queue left the ledger, by the state in which they ended.
type Left struct {
	Queue                        string
	Succeeded, Failed, Cancelled int64
}

// Jobs returns how many jobs those are.
func (l Left) Jobs() int64 { return l.Succeeded + l.Failed + l.Cancelled }

// Kind returns KindRemoved.
func (*Removed) Kind() Kind { return KindRemoved }

func (b *Removed) fields(f *fields) {
	f.int64("hi", &b.Hi)
	f.int64("jobs", &b.Jobs)
	f.int64("events", &b.Events)
	f.int64("bodies", &b.Bodies)
	f.int64("bytes", &b.BodyBytes)
	f.int64("keys", &b.Keys)
	f.flag("more", &b.More)
	f.text("reason", &b.Reason)
	f.sparse = true
	f.int64("kept", &b.Kept)
	f.text("erased", (*string)(&b.Erased))
	f.text("ledger", &b.Ledger)
	f.left("left", &b.Left)
}

// left is [["mail",1,0,2],…]: a queue, and how many of its jobs had succeeded, failed and been cancelled.
func (f *fields) left(key string, v *[]Left) {
	raw, ok := f.member(key, len(*v) == 0)
	switch {
	case !ok:
	case f.read:
		left, err := readLeft(raw)
		if err != nil {
			f.fail(key, raw, "a list of queues with three numbers each")
		}
		*v = left
	default:
		f.out = append(f.out, '[')
		for i, l := range *v {
			if i > 0 {
				f.out = append(f.out, ',')
			}
			f.out = appendText(append(f.out, '['), l.Queue, f.ascii)
			for _, n := range []int64{l.Succeeded, l.Failed, l.Cancelled} {
				f.out = strconv.AppendInt(append(f.out, ','), n, 10)
			}
			f.out = append(f.out, ']')
		}
		f.out = append(f.out, ']')
	}
}

func readLeft(raw string) (left []Left, err error) {
	var rows [][]json.RawMessage
	if err := json.Unmarshal([]byte(raw), &rows); err != nil {
		return nil, err
	}
	for _, row := range rows {
		if len(row) != 4 {
			return nil, errors.New("not a queue with three numbers")
		}
		var l Left
		l.Queue, err = jsonscan.Text(string(row[0]))
		for i, n := range []*int64{&l.Succeeded, &l.Failed, &l.Cancelled} {
			if err == nil {
				*n, err = jsonscan.Int(string(row[1+i]))
			}
		}
		if err != nil {
			return nil, err
		}
		left = append(left, l)
	}
	return left, nil
}

// removed checks the body of a removed event.
func (s *validator) removed(b *Removed) {
	if b.Hi%archivedBlock != 0 {
		s.fail("hi", b.Hi)
	}
	s.between("jobs", b.Jobs, 0, b.Hi)
	s.between("events", b.Events, b.Jobs, b.Hi)
	if b.Erased != "" {
		s.between("jobs", b.Jobs, 0, 0)
		s.between("events", b.Events, 0, 0)
		s.between("kept", b.Kept, 0, 0)
		s.between("bodies", b.Bodies, 0, b.Hi)
	} else {
		s.between("bodies", b.Bodies, 0, b.Events)
		s.between("kept", b.Kept, 0, b.Events-b.Bodies)
	}
	s.between("keys", b.Keys, 0, b.Jobs)
	if jobs := s.left(b.Left, b.Jobs); len(b.Left) > 0 && jobs != b.Jobs {
		s.fail("left", jobs)
	}
	if id, err := hex.DecodeString(b.Ledger); b.Ledger != "" && (err != nil || len(id) != ledgerIDBytes ||
		strings.ToLower(b.Ledger) != b.Ledger) {
		s.fail("ledger", b.Ledger)
	}
}

// left checks that queues are in order, and returns how many jobs left, where none may have more than most.
func (s *validator) left(list []Left, most int64) (jobs int64) {
	last := ""
	for _, l := range list {
		s.between("left", l.Succeeded, 0, most)
		s.between("left", l.Failed, 0, most)
		s.between("left", l.Cancelled, 0, most)
		if l.Queue <= last || l.Jobs() == 0 {
			s.fail("left", l.Queue)
		}
		jobs, last = jobs+l.Jobs(), l.Queue
	}
	return jobs
}
