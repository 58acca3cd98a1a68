package faultvfs

import (
	"bytes"
	"maps"
	"math/rand/v2"
	"slices"
)

// Loss is what a power cut does to operations that no sync has made durable.
type Loss int

// The kinds of loss.
const (
	LoseNothing Loss = iota // the process was killed, the machine keeps running
	LoseAll
	LoseTail    // the last operations; the order is kept
	LoseSome    // any operations
	LoseSectors // any sectors of 512 bytes of any operation
	Losses
)

// String returns a name for l.
func (l Loss) String() string {
	return [...]string{"nothing", "all that was not synced", "the tail of it", "some of it",
		"some sectors of it"}[l]
}

const sector = 512

// Lie is a way in which a disk breaks its promises.
type Lie struct {
	Syncs  func(name string) bool // a sync of the file with this name does nothing; nil: all syncs work
	Folder bool                   // a sync of the folder does nothing
	From   int                    // the first operation that this applies to
}

// Replay steps through a Record and knows what is durable at each time.
type Replay struct {
	record  *Record
	lie     Lie
	forgets bool
	next    int      // the next operation
	files   [][]byte // the durable contents, by number
	called  []string // their names
	names   map[string]int
	pending []pendingOp // operations that are not durable yet, in order
}

// pendingOp is an operation that a power cut may undo.
type pendingOp struct {
	op
	forgotten bool // a sync of it failed, and no later sync makes it durable
}

// NewReplay returns a replay that is before the first operation. forgets selects a disk that drops the
// pending data of a failed sync, so that later syncs succeed without it, as with Linux's page cache.
func (r *Record) NewReplay(lie Lie, forgets bool) *Replay {
	p := &Replay{record: r, lie: lie, forgets: forgets, names: make(map[string]int)}
	for _, name := range slices.Sorted(maps.Keys(r.base)) {
		p.names[name] = len(p.files)
		p.files, p.called = append(p.files, bytes.Clone(r.base[name])), append(p.called, name)
	}
	return p
}

// Go advances to just before operation n, which must not be in the past.
func (p *Replay) Go(n int) {
	for ; p.next < n; p.next++ {
		switch o := p.record.ops[p.next]; o.kind {
		case synced:
			if p.lie.Syncs == nil || p.next < p.lie.From || !p.lie.Syncs(p.called[o.file]) {
				p.harden(func(q op) bool { return q.file == o.file && q.kind != create && q.kind != unlink })
			}
		case syncFolder:
			if !p.lie.Folder || p.next < p.lie.From {
				p.harden(func(q op) bool { return q.kind == create || q.kind == unlink })
			}
		case syncFailed:
			for i := range p.pending {
				q := &p.pending[i]
				q.forgotten = q.forgotten || p.forgets && q.file == o.file && q.kind != create && q.kind != unlink
			}
		case create:
			p.files, p.called = append(p.files, nil), append(p.called, o.name)
			fallthrough
		default:
			p.pending = append(p.pending, pendingOp{op: o})
		}
	}
}

// harden makes the pending operations durable that which selects.
func (p *Replay) harden(which func(op) bool) {
	kept := p.pending[:0]
	for _, q := range p.pending {
		switch {
		case !which(q.op):
			kept = append(kept, q)
		case !q.forgotten:
			q.do(p.files, p.names)
		}
	}
	clear(p.pending[len(kept):])
	p.pending = kept
}

// do applies o to files and their names.
func (o op) do(files [][]byte, names map[string]int) {
	switch o.kind {
	case create:
		names[o.name] = o.file
	case unlink:
		if names[o.name] == o.file {
			delete(names, o.name)
		}
	case written:
		files[o.file] = put(files[o.file], o.offset, o.data)
	case truncated:
		files[o.file] = resize(files[o.file], o.offset)
	}
}

func put(file []byte, offset int64, data []byte) []byte {
	if end := offset + int64(len(data)); int64(len(file)) < end {
		file = resize(file, end)
	}
	copy(file[offset:], data)
	return file
}

func resize(file []byte, size int64) []byte {
	if int64(len(file)) >= size {
		return file[:size:size]
	}
	return append(file, make([]byte, size-int64(len(file)))...)
}

// Crash returns the files after a power cut at this time. dice decide which pending operations are lost.
func (p *Replay) Crash(loss Loss, dice *rand.Rand) map[string][]byte {
	files, names := make([][]byte, len(p.files)), maps.Clone(p.names)
	for i, content := range p.files {
		files[i] = bytes.Clone(content)
	}
	kept := dice.IntN(len(p.pending) + 1)
	chance := []float64{0.1, 0.5, 0.9}[dice.IntN(3)]
	for i, q := range p.pending {
		switch {
		case loss == LoseAll, loss == LoseTail && i >= kept, loss == LoseSome && dice.Float64() > chance:
		case loss == LoseSectors:
			q.doSome(files, names, chance, dice)
		default:
			q.do(files, names)
		}
	}
	left := make(map[string][]byte)
	for name, file := range names {
		left[name] = files[file]
	}
	return left
}

// doSome applies some sectors of o.
func (o op) doSome(files [][]byte, names map[string]int, chance float64, dice *rand.Rand) {
	if o.kind != written {
		if dice.Float64() < chance {
			o.do(files, names)
		}
		return
	}
	for data, offset := o.data, o.offset; len(data) > 0; {
		n := min(int64(len(data)), sector-offset%sector)
		if dice.Float64() < chance {
			files[o.file] = put(files[o.file], offset, data[:n])
		}
		data, offset = data[n:], offset+n
	}
}
