package ledger

import "jobledger/ledger/internal/engine"

// Notifications. A commit that made a job claimable is announced: to this process through channels, to others
// through the engine. Only speed depends on it.

// AnnounceEnded declares that this transaction ends the claim of another process; those who watch with
// WatchEnded are woken once it is committed.
func (tx *Tx) AnnounceEnded() { tx.store.announces |= engine.Ended }

// Announce declares that this transaction makes a job claimable, now or later; watchers are woken once it is
// committed.
func (tx *Tx) Announce() { tx.store.announces |= engine.Claimable }

// InboxDue reports whether the caller should look into the inbox now, because rows may have come or this
// process has not looked for a second, and whether it is sure that there is a row. A caller that does not
// look, or has no success, calls NoteInbox.
func (s *Store) InboxDue() (look, sure bool) { return s.watchers.InboxDue() }

// NoteInbox has the next caller of InboxDue look into the inbox.
func (s *Store) NoteInbox() { s.watchers.NoteInbox() }

// announce wakes the watchers of this process and of others, after the commit.
func (s *Store) announce() {
	s.watchers.Wake(s.announces)
	if !s.Exclusive {
		s.engine.Notify(s.announces)
	}
}

// announcedToOthers returns the topics whose notification may be sent with the commit.
func (s *Store) announcedToOthers() engine.Topic {
	if s.Exclusive || s.watchers.Any() {
		return 0
	}
	return s.announces
}

// Watch returns a channel that receives after a commit, of this process or another, that may have made a job
// claimable, and when the Store is closed. It has room for one, so a busy receiver misses nothing but the
// count. Wake-ups can be spurious or late; also poll. stop ends the subscription.
func (s *Store) Watch() (woken <-chan struct{}, stop func()) { return s.watch(engine.Claimable) }

// WatchEnded is Watch for commits that may have ended a claim of this process: a cancel or a reclaim.
func (s *Store) WatchEnded() (woken <-chan struct{}, stop func()) { return s.watch(engine.Ended) }

func (s *Store) watch(topic engine.Topic) (woken <-chan struct{}, stop func()) {
	if s.Exclusive || s.engine == nil || s.closed.Load() {
		return s.watchers.Watch(topic, nil)
	}
	return s.watchers.Watch(topic, s.engine.Listen)
}
