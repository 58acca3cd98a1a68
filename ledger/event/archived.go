package event

import (
	"encoding/base64"
	"time"
)

// Archived: the events of a range were copied into a segment file of the archive, and the copy was read back.
// The ranges of a ledger's archived events follow on each other without a gap.
type Archived struct {
	Lo     int64  `event:"lo"`                     // the archived events are those from Lo+1 to Hi
	Hi     int64  `event:"hi,min=1"`               // the last archived event
	Root   string `event:"root,required"`          // of the hash tree over the events up to Hi, in base64
	SHA256 string `event:"sha256,digest,required"` // of the file, in hex
	Bytes  int64  `event:"bytes,min=1"`            // the size of the file
	Jobs   int64  `event:"jobs"`                   // jobs that have lines in the file
	// lines of earlier events of these jobs, which the file has as well
	CarriedIn int64 `event:"carried_in"`
	// of the first archived event
	FirstAt time.Time `event:"first_at,required"`
	LastAt  time.Time `event:"last_at,required"` // of the last archived event
	Reason  string    `event:"reason"`
	// the SHA-256 of what is next to the file and follows from it, in hex, by the ends of the names: idx and
	// sum; none: an older program did not say
	Parts map[string]string `event:"parts"`
}

// Kind returns KindArchived.
func (*Archived) Kind() Kind { return KindArchived }

func (b *Archived) fields(f *fields) {
	f.int64("lo", &b.Lo)
	f.int64("hi", &b.Hi)
	f.text("root", &b.Root)
	f.text("sha256", &b.SHA256)
	f.int64("bytes", &b.Bytes)
	f.int64("jobs", &b.Jobs)
	f.int64("carried_in", &b.CarriedIn)
	f.timeText("first_at", &b.FirstAt)
	f.timeText("last_at", &b.LastAt)
	f.text("reason", &b.Reason)
	f.sparse = true
	f.dict("parts", &b.Parts)
}

// ArchiveDescribed: a segment file that an older program had archived was read again. It says what that
// program did not, once for a file.
type ArchiveDescribed struct {
	Hi    int64             `event:"hi,min=256"` // the last event of the file
	Parts map[string]string `event:"parts"`
	// the jobs of every earlier removed that has no left; none: there are none, or other files still have to be
	// described
	Left []Left `event:"left"`
}

// Kind returns KindArchiveDescribed.
func (*ArchiveDescribed) Kind() Kind { return KindArchiveDescribed }

func (b *ArchiveDescribed) fields(f *fields) {
	f.int64("hi", &b.Hi)
	f.dict("parts", &b.Parts)
	f.sparse = true
	f.left("left", &b.Left)
}

// archivedBlock is what Lo and Hi are multiples of: the leaves of a block of the hash tree.
const archivedBlock = 256

// archived checks the body of an archived event.
func (s *validator) archived(b *Archived) {
	s.between("hi", b.Hi, b.Lo+1, 1<<53)
	if b.Lo%archivedBlock != 0 || b.Hi%archivedBlock != 0 {
		s.fail("hi", b.Hi)
	}
	if root, err := base64.StdEncoding.Strict().DecodeString(b.Root); err != nil || len(root) != 32 {
		s.fail("root", b.Root)
	}
	s.between("jobs", b.Jobs, 0, b.Hi)
	s.between("carried_in", b.CarriedIn, 0, b.Lo)
	if b.LastAt.Before(b.FirstAt) {
		s.fail("last_at", b.LastAt)
	}
	if len(b.Parts) > 0 {
		s.parts(b.Parts)
	}
}

// parts checks that both parts of a file have a digest.
func (s *validator) parts(parts map[string]string) {
	if len(parts) != 2 || !isDigest(parts["idx"]) || !isDigest(parts["sum"]) {
		s.fail("parts", parts)
	}
}
