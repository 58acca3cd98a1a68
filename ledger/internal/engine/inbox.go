package engine

import (
	"sync/atomic"
	"time"
)

// inboxEvery is how often a process looks into the inbox without having been notified of a row.
const inboxEvery = time.Second

// inboxFlag says whether this process should look into the inbox: to ask costs no more than to read an
// integer.
type inboxFlag struct {
	state  atomic.Int32
	looked atomic.Int64 // when this process looked last, in nanoseconds since 1970
}

const (
	inboxMaybe = 1 // something was committed, and it is not known what
	inboxRows  = 2 // rows were committed into it
)

// note takes in what others were notified of.
func (f *inboxFlag) note(topics Topic) {
	switch {
	case topics&Inbox == 0:
	case topics == AnyTopic:
		f.state.CompareAndSwap(0, inboxMaybe)
	default:
		f.state.Store(inboxRows)
	}
}

// InboxDue reports whether the caller should look into the inbox now, and whether it is sure that there is a
// row, so that it need not ask first. It answers so once: a caller that does not look calls NoteInbox.
func (w *Watchers) InboxDue() (look, sure bool) {
	f, now := &w.inbox, time.Now().UnixNano()
	state := f.state.Load()
	if last := f.looked.Load(); state == 0 && now-last < int64(inboxEvery) && now >= last {
		return false, false
	}
	f.looked.Store(now)
	return true, f.state.Swap(0) == inboxRows
}

// NoteInbox has the next caller of InboxDue look: there are more rows, or the one that looked had no success.
func (w *Watchers) NoteInbox() { w.inbox.state.Store(inboxRows) }
