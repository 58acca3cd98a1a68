package segment

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"

	"jobledger/ledger/event"
)

// Index says in which members of a segment file the events of each job are.
type Index struct {
	Range
	Carried int64             // carried-in lines of the file
	SHA256  [sha256.Size]byte // of the file

	offsets []int64 // of the members, and the size of the file
	jobs    []byte  // entries of jobEntry bytes, in the order of the ids
	members []byte  // numbers of members, four bytes each
	text    []byte  // all of it, where it was read
}

// Place is a member of a file.
type Place struct{ Offset, Length int64 }

// An entry of a job: its id, its number, and where the numbers of its members begin.
const (
	idSize   = 26
	jobEntry = idSize + 8 + 4
)

// Digest returns the SHA-256 of the text of an index that was read, in hex.
func (x *Index) Digest() string { return digest(x.text) }

// Jobs returns how many jobs the file has lines of.
func (x *Index) Jobs() int { return len(x.jobs)/jobEntry - 1 }

func (x *Index) id(i int) string { return string(x.jobs[i*jobEntry:][:idSize]) }

func (x *Index) begin(i int) uint32 { return binary.BigEndian.Uint32(x.jobs[i*jobEntry+idSize+8:]) }

// Find returns the number of a job, that is the position of its first event, and the members that hold its
// events, in order. ok is false if the file has none of it.
func (x *Index) Find(id event.JobID) (n int64, places []Place, ok bool) {
	i := sort.Search(x.Jobs(), func(i int) bool { return x.id(i) >= string(id) })
	if i == x.Jobs() || x.id(i) != string(id) {
		return 0, nil, false
	}
	n = int64(binary.BigEndian.Uint64(x.jobs[i*jobEntry+idSize:])) //#nosec G115 -- a position, as it was written
	for m := x.begin(i); m < x.begin(i+1); m++ {
		number := binary.BigEndian.Uint32(x.members[4*m:])
		places = append(places, x.place(int(number)))
	}
	return n, places, true
}

// Own returns the offset at which the events of the range begin. Before it are the carried-in ones.
func (x *Index) Own() int64 { return x.offsets[len(x.offsets)-1-int(x.Events()/MemberLines)] }

func (x *Index) place(member int) Place {
	return Place{x.offsets[member], x.offsets[member+1] - x.offsets[member]}
}

// WithPrefix returns the ids of the jobs that begin with prefix, at most limit, in order.
func (x *Index) WithPrefix(prefix string, limit int) (ids []event.JobID) {
	i := sort.Search(x.Jobs(), func(i int) bool { return x.id(i) >= prefix })
	for ; i < x.Jobs() && len(ids) < limit && strings.HasPrefix(x.id(i), prefix); i++ {
		ids = append(ids, event.JobID(x.id(i)))
	}
	return ids
}

// At returns the member that holds the event of the range at pos, and how many lines of it are before that.
func (x *Index) At(pos int64) (p Place, lines int, ok bool) {
	if pos <= x.Lo || pos > x.Hi {
		return p, 0, false
	}
	before := int((pos - x.Lo - 1) / MemberLines)
	return x.place(len(x.offsets) - 1 - int(x.Events()/MemberLines) + before), int((pos - 1) % MemberLines), true
}

// indexHeader is the first line of an index.
const indexHeader = "jobledger-segment-index/v1\n"

// Encode appends the bytes of x to dst.
func (x *Index) Encode(dst []byte) []byte {
	begin := len(dst)
	dst = append(append(dst, indexHeader...), x.SHA256[:]...)
	for _, n := range []int64{x.Lo, x.Hi, x.Carried, int64(len(x.offsets)), int64(x.Jobs()),
		int64(len(x.members)) / 4} {
		dst = binary.BigEndian.AppendUint64(dst, uint64(n)) //#nosec G115 -- none is negative
	}
	for _, offset := range x.offsets {
		dst = binary.BigEndian.AppendUint64(dst, uint64(offset)) //#nosec G115 -- no offset is negative
	}
	dst = append(append(dst, x.jobs...), x.members...)
	sum := sha256.Sum256(dst[begin:])
	return append(dst, sum[:]...)
}

// ParseIndex reads the bytes of an index. Anything that Encode would not write is an error that wraps
// ErrDamaged.
func ParseIndex(text []byte) (*Index, error) {
	x, err := parseIndex(text)
	if err != nil {
		return nil, fmt.Errorf("%w: the index: %w", ErrDamaged, err)
	}
	return x, nil
}

func parseIndex(text []byte) (*Index, error) {
	body := len(text) - sha256.Size
	rest, ok := bytes.CutPrefix(text[:max(body, 0)], []byte(indexHeader))
	if !ok {
		return nil, errors.New("another form, or not whole")
	}
	if sum := sha256.Sum256(text[:body]); !bytes.Equal(sum[:], text[body:]) {
		return nil, errors.New("its checksum differs")
	}
	const numbers = 6
	if len(rest) < sha256.Size+8*numbers {
		return nil, errors.New("it has no numbers")
	}
	x := &Index{text: text}
	copy(x.SHA256[:], rest)
	rest = rest[sha256.Size:]
	var n [numbers]int64
	for i := range n {
		n[i] = int64(binary.BigEndian.Uint64(rest[8*i:])) //#nosec G115 -- judged below
	}
	rest = rest[8*numbers:]
	x.Range, x.Carried = Range{n[0], n[1]}, n[2]
	offsets, jobs, members := n[3], n[4], n[5]
	size := int64(len(rest))
	if x.Check() != nil || x.Carried < 0 || offsets < 1 || offsets > size/8 || jobs < 0 ||
		jobs > size/jobEntry ||
		members < 0 || members > size/4 || 8*offsets+jobEntry*(jobs+1)+4*members != size ||
		offsets-1 != (x.Carried+MemberLines-1)/MemberLines+x.Events()/MemberLines {
		return nil, errors.New("its numbers contradict each other")
	}
	for i := range offsets {
		x.offsets = append(x.offsets, int64(binary.BigEndian.Uint64(rest[8*i:]))) //#nosec G115 -- judged next
		if offset := x.offsets[i]; offset < 0 || i > 0 && offset <= x.offsets[i-1] {
			return nil, errors.New("its offsets are not in order")
		}
	}
	x.jobs, x.members = rest[8*offsets:][:jobEntry*(jobs+1)], rest[size-4*members:]
	return x, x.checkLists(members)
}

// checkLists returns an error if a search could leave the tables.
func (x *Index) checkLists(members int64) error {
	for i := range x.Jobs() {
		if x.begin(i) >= x.begin(i+1) || i > 0 && x.id(i-1) >= x.id(i) {
			return errors.New("its jobs are not in order")
		}
	}
	if x.begin(0) != 0 || int64(x.begin(x.Jobs())) != members {
		return errors.New("its lists are not whole")
	}
	for i := range members {
		if int(binary.BigEndian.Uint32(x.members[4*i:])) >= len(x.offsets)-1 {
			return errors.New("it names a member that is not there")
		}
	}
	return nil
}

// builder gathers an index while the lines of a file go by.
type builder struct {
	jobs    map[event.JobID]*place
	queues  map[string]string // each once, for places
	offsets []int64           // of the members that have ended
}

// place is where the events of a job are.
type place struct {
	n       int64
	queue   string
	members []uint32
}

// add takes an event of the member that has not ended, and returns the queue of its job.
func (b *builder) add(e *event.Event) (queue string, err error) {
	p := b.jobs[e.Job]
	if p == nil {
		first, ok := e.Body.(*event.Enqueued)
		if !ok || len(e.Job) != idSize {
			return "", fmt.Errorf("segment: event %d is the first of the job %.60q, and is %s", e.Pos, e.Job, e.Kind())
		}
		if _, known := b.queues[first.Queue]; !known {
			name := strings.Clone(first.Queue) // it may be a part of a longer text
			b.queues[name] = name
		}
		p = &place{n: e.Pos, queue: b.queues[first.Queue]}
		b.jobs[e.Job] = p
	} else if e.Kind() == event.KindEnqueued {
		return "", fmt.Errorf("segment: event %d is the second enqueued of the job %s", e.Pos, e.Job)
	}
	number := uint32(len(b.offsets)) //#nosec G115 -- fewer than 2³² members
	if len(p.members) == 0 || p.members[len(p.members)-1] != number {
		p.members = append(p.members, number)
	}
	return p.queue, nil
}

// index returns the index of the file with these facts.
func (b *builder) index(f *Facts) *Index {
	x := &Index{Range: f.Range, Carried: f.Carried, SHA256: f.SHA256, offsets: append(b.offsets, f.Bytes)}
	ids := make([]event.JobID, 0, len(b.jobs))
	for id := range b.jobs {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b event.JobID) int { return cmp.Compare(a, b) })
	entry := func(id string, n int64) {
		x.jobs = append(x.jobs, id...)
		x.jobs = binary.BigEndian.AppendUint64(x.jobs, uint64(n)) //#nosec G115 -- a position is not negative
		x.jobs = binary.BigEndian.AppendUint32(x.jobs, uint32(len(x.members)/4))
	}
	for _, id := range ids {
		p := b.jobs[id]
		entry(string(id), p.n)
		for _, m := range p.members {
			x.members = binary.BigEndian.AppendUint32(x.members, m)
		}
	}
	entry(strings.Repeat("~", idSize), 0) // where the last list ends
	return x
}
