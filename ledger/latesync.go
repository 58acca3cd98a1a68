package ledger

import "fmt"

// If a commit is not durable yet, the callers of its functions are answered once it has been synced. The
// commit loop goes on meanwhile, and so do other processes. They may see such a commit: what they write is
// synced after it. Their reports are not durable yet, so Read syncs what it shows.

// unsynced is a group whose transaction is committed, and the tail after it.
type unsynced struct {
	group []grouped
	tail  int64
}

// syncLoop makes transactions durable and answers their callers, all groups at once that wait.
func (s *Store) syncLoop() {
	defer close(s.synced)
	for next := range s.unsynced {
		waiting := append(make([]unsynced, 0, 4), next)
		for more := true; more; {
			select {
			case next, more = <-s.unsynced:
				if more {
					waiting = append(waiting, next)
				}
			default:
				more = false
			}
		}
		err := s.late.Sync()
		if err != nil {
			err = fmt.Errorf("%w: %w", ErrUnknown, err)
		}
		for _, u := range waiting {
			if err == nil {
				s.written.Store(u.tail)
			}
			s.answer(u.group, err)
		}
	}
}
