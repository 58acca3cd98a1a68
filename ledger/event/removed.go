package event

import (
	"encoding/hex"
	"strings"
)

// ledgerIDBytes is how many bytes the id of a ledger has.
const ledgerIDBytes = 16

// Removed: jobs that had ended left the ledger's database with all their events, which are in segment files.
// Or the payloads and results of one of them, which had stayed, were erased.
type Removed struct {
	Hi        int64 // up to this event; their segments end here, or before
	Jobs      int64
	Events    int64 // of these jobs
	Bodies    int64 // payloads and results, which are in no segment file
	BodyBytes int64
	Keys      int64 // of the jobs' keys, those that stay theirs for ever
	More      bool  // there were more jobs to remove
	Reason    string
	Kept      int64  // payloads and results of these jobs that stay, where erase reaches them
	Erased    JobID  // in place of jobs that leave: one that had left; Bodies and BodyBytes are what was erased
	Ledger    string // the id of the ledger, where its first event left; 32 digits in hex
}

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
}

// removed checks the body of a removed event.
func (s *validator) removed(b *Removed) {
	s.between("hi", b.Hi, archivedBlock, 1<<53)
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
	s.between("bytes", b.BodyBytes, 0, 1<<53)
	s.between("keys", b.Keys, 0, b.Jobs)
	if id, err := hex.DecodeString(b.Ledger); b.Ledger != "" && (err != nil || len(id) != ledgerIDBytes ||
		strings.ToLower(b.Ledger) != b.Ledger) {
		s.fail("ledger", b.Ledger)
	}
}
