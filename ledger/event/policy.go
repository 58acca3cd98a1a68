package event

import "time"

// ArchivePolicy: from now on, every process that sweeps archives what is old. The last one counts.
type ArchivePolicy struct {
	// history that is at least so old is archived and removed; 0: none
	OlderThan time.Duration `event:"older_than,max=876000h"`
	// failed jobs stay until they are so old; 0: as the others
	KeepFailed time.Duration `event:"keep_failed,max=876000h"`
	RemoveLogs bool          `event:"remove_logs"` // the output of the jobs' commands goes with them
	Reason     string        `event:"reason"`
	KeepBodies bool          `event:"keep_bodies"` // payloads and results stay in the ledger
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
