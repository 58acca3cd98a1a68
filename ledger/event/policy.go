package event

import "time"

// ArchivePolicy: from now on, every process that sweeps archives what is old. The last one counts.
type ArchivePolicy struct {
	OlderThan  time.Duration // what is at least so old is archived and removed; 0: nothing is
	KeepFailed time.Duration // failed jobs stay until they are so old; 0: as the others
	RemoveLogs bool          // the output of the jobs' commands goes with them
	Reason     string
	KeepBodies bool // payloads and results stay in the ledger
}

// Kind returns KindArchivePolicy.
func (*ArchivePolicy) Kind() Kind { return KindArchivePolicy }

func (b *ArchivePolicy) fields(f *fields) {
	f.duration("older_than", &b.OlderThan)
	f.duration("keep_failed", &b.KeepFailed)
	f.flag("remove_logs", &b.RemoveLogs)
	f.text("reason", &b.Reason)
	f.sparse = true
	f.flag("keep_bodies", &b.KeepBodies)
}

// MaxArchiveAge is the greatest age that a policy may name.
const MaxArchiveAge = 100 * 365 * 24 * time.Hour

// archivePolicy checks the body of an archive_policy event.
func (s *validator) archivePolicy(b *ArchivePolicy) {
	s.between("older_than", int64(b.OlderThan), 0, int64(MaxArchiveAge))
	s.between("keep_failed", int64(b.KeepFailed), 0, int64(MaxArchiveAge))
	if b.OlderThan == 0 && (b.KeepFailed != 0 || b.RemoveLogs || b.KeepBodies) {
		s.fail("keep_failed", b.KeepFailed)
	}
}
