package event

// The values of UniqueWhile: how long a job has its key, if not for ever.
const (
	// WhileQueued: until the job is claimed, or ends. A retry by an operator begins that once more.
	WhileQueued = "queued"
	// WhileUnfinished: until the job has ended. A retry begins that once more.
	WhileUnfinished = "unfinished"
)

// Replaced: a producer gave another payload to a job that waits.
// States: queued → queued; blocked → blocked.
type Replaced struct {
	// hex of SHA-256(salt‖payload), with the salt of the job
	PayloadSHA256 string `event:"payload_sha256,digest,required"`
	PayloadBytes  int64  `event:"payload_bytes"`
}

// Kind returns KindReplaced.
func (*Replaced) Kind() Kind { return KindReplaced }

func (b *Replaced) fields(f *fields) {
	f.text("payload_sha256", &b.PayloadSHA256) // the views know the column of digests of other kinds
	f.int64("payload_bytes", &b.PayloadBytes)
}

// Heals reports whether the jobs that were cancelled because of the retried one wait for it once more.
func (b *Retried) Heals() bool { return !b.Alone && !b.KeyTaken }
