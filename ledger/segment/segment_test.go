package segment_test

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
	"jobledger/ledger/proof"
	"jobledger/ledger/segment"
)

// night is the history of testdata/history/bad-night.jsonl, without bodies.
var night = sync.OnceValue(func() (events []event.Event) {
	text, err := os.ReadFile(filepath.Join("..", "..", "testdata", "history", "bad-night.jsonl"))
	if err != nil {
		panic(err)
	}
	for line := range bytes.Lines(text) {
		var l event.Line
		if err := l.UnmarshalJSON(bytes.TrimSuffix(line, []byte("\n"))); err != nil {
			panic(err)
		}
		events = append(events, l.Event)
	}
	return events
})

// contents returns the events of the file of r: those of the range, after those of earlier ones of its jobs.
func contents(r segment.Range) (events []event.Event) {
	open, within := make(map[event.JobID]bool), make(map[event.JobID]bool)
	for _, e := range night()[:r.Hi] {
		switch {
		case e.Job == "":
		case e.Pos > r.Lo:
			within[e.Job] = true
		case e.Kind().HasSeq():
			open[e.Job] = !e.To.Final()
		}
	}
	var jobs []event.JobID
	of := make(map[event.JobID][]event.Event)
	for _, e := range night()[:r.Lo] {
		if e.Job == "" || !open[e.Job] && !within[e.Job] {
			continue
		}
		if of[e.Job] == nil {
			jobs = append(jobs, e.Job)
		}
		of[e.Job] = append(of[e.Job], e)
	}
	for _, job := range jobs {
		events = append(events, of[job]...)
	}
	return append(events, night()[r.Lo:r.Hi]...)
}

func anyRange(random *rand.Rand) segment.Range {
	last := len(night()) / segment.MemberLines
	lo := random.IntN(last)
	hi := lo + 1 + random.IntN(min(last-lo, 4))
	return segment.Range{Lo: int64(lo) * segment.MemberLines, Hi: int64(hi) * segment.MemberLines}
}

func write(t testing.TB, r segment.Range) ([]byte, segment.Facts) {
	t.Helper()
	var out bytes.Buffer
	w, err := segment.NewWriter(&out, r)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range contents(r) {
		if err := w.Add(&e); err != nil {
			t.Fatal(err)
		}
	}
	f, err := w.Close()
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes(), f
}

// A file has every line of its range, and each job in it from its first event on; its index finds all of
// them.
func TestSegmentHoldsItsRange(t *testing.T) {
	for seed := range uint64(ledgertest.Size(3, 8, 50)) {
		random := rand.New(rand.NewPCG(seed, 2))
		r := anyRange(random)
		file, written := write(t, r)
		if again, _ := write(t, r); !bytes.Equal(file, again) {
			t.Fatal("equal events make different bytes")
		}
		f, parts, err := segment.Check(bytes.NewReader(file), r)
		if err != nil || !f.Same(&written) || f.SHA256 != sha256.Sum256(file) || f.Bytes != int64(len(file)) {
			t.Fatalf("got %+v, %v; want %+v", f, err, written)
		}
		var blocks []proof.Hash
		var leaves []proof.Hash
		var text bytes.Buffer
		for _, e := range contents(r) {
			leaf := e.AppendLeaf(nil)
			text.Write(append(leaf, '\n'))
			if e.Pos > r.Lo {
				leaves = append(leaves, proof.LeafHash(leaf))
			}
		}
		for chunk := range slices.Chunk(leaves, proof.BlockSize) {
			hash, err := proof.BlockHash(chunk)
			if err != nil {
				t.Fatal(err)
			}
			blocks = append(blocks, hash)
		}
		if err := f.CheckBlocks(blocks); err != nil {
			t.Fatal(err)
		}
		// Any reader of gzip finds these lines.
		unzipped, err := gzip.NewReader(bytes.NewReader(file))
		if err != nil {
			t.Fatal(err)
		}
		if lines, err := io.ReadAll(unzipped); err != nil || !bytes.Equal(lines, text.Bytes()) {
			t.Fatalf("%d bytes of lines, want %d: %v", len(lines), text.Len(), err)
		}
		parsed, err := parts.Index()
		if err != nil || fmt.Sprintf("%x", sha256.Sum256(parsed.Encode(nil))) != parts.Digests()["idx"] {
			t.Fatalf("the index changed on its way: %v", err)
		}
		checkIndex(t, file, r, parsed, int(f.Jobs))
		checkAt(t, file, r, parsed, r.Lo+1+random.Int64N(r.Events()))
	}
}

func indexOf(t testing.TB, file []byte, r segment.Range) *segment.Index {
	t.Helper()
	_, parts, err := segment.Check(bytes.NewReader(file), r)
	if err != nil {
		t.Fatal(err)
	}
	x, err := parts.Index()
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func checkIndex(t *testing.T, file []byte, r segment.Range, index *segment.Index, jobs int) {
	want := make(map[event.JobID][]int64)
	for _, e := range contents(r) {
		if e.Job != "" {
			want[e.Job] = append(want[e.Job], e.Pos)
		}
	}
	held := make(map[segment.Place]map[event.JobID][]int64) // what each member has of each job
	if index.Jobs() != len(want) || jobs != len(want) {
		t.Fatalf("%d jobs in the index, %d in the facts, want %d", index.Jobs(), jobs, len(want))
	}
	for id, positions := range want {
		n, places, ok := index.Find(id)
		if !ok || n != positions[0] {
			t.Fatalf("job %s: number %d, %v, want %d", id, n, ok, positions[0])
		}
		var got []int64
		for _, p := range places {
			if held[p] == nil {
				m, err := segment.ReadMember(bytes.NewReader(file), p.Offset, p.Length)
				if err != nil {
					t.Fatal(err)
				}
				held[p] = make(map[event.JobID][]int64)
				for _, e := range m.Events {
					held[p][e.Job] = append(held[p][e.Job], e.Pos)
				}
			}
			got = append(got, held[p][id]...)
		}
		if !slices.Equal(got, positions) {
			t.Fatalf("job %s: events %v, want %v", id, got, positions)
		}
		if ids := index.WithPrefix(string(id[:20]), 1000); !slices.Contains(ids, id) {
			t.Fatalf("%s is not among those that begin like it: %v", id, ids)
		}
	}
	if _, _, ok := index.Find("7ZZZZZZZZZZZZZZZZZZZZZZZZZ"); ok {
		t.Fatal("a job was found that is not there")
	}
}

func checkAt(t *testing.T, file []byte, r segment.Range, index *segment.Index, pos int64) {
	p, lines, ok := index.At(pos)
	m, err := segment.ReadMember(bytes.NewReader(file), p.Offset, p.Length)
	if !ok || err != nil || m.Events[lines].Pos != pos {
		t.Fatalf("event %d: %+v, %v", pos, p, err)
	}
	if _, _, ok := index.At(r.Lo); ok {
		t.Fatal("an event outside of the range was found")
	}
}

// Whatever byte of a file changes, a reader gets an error or sees another SHA-256; and where the reader gets
// no error, the lines are the same.
func TestSegmentMutations(t *testing.T) {
	r := segment.Range{Lo: 1024, Hi: 1536}
	file, facts := write(t, r)
	random := rand.New(rand.NewPCG(1, 7))
	for range ledgertest.Size(20, 60, 1000) {
		damaged := bytes.Clone(file)
		at := random.IntN(len(damaged))
		damaged[at] ^= 1 << random.IntN(8)
		f, _, err := segment.Check(bytes.NewReader(damaged), r)
		switch {
		case err != nil && !errors.Is(err, segment.ErrDamaged):
			t.Errorf("byte %d: %v", at, err)
		case err == nil && (f.SHA256 == facts.SHA256 || !f.SameContent(&facts)):
			t.Errorf("byte %d: the change was not noticed", at)
		}
	}
	for _, n := range []int{0, 1, 10, len(file) / 2, len(file) - 1} {
		if _, _, err := segment.Check(bytes.NewReader(file[:n]), r); !errors.Is(err, segment.ErrDamaged) {
			t.Errorf("%d bytes of %d: %v", n, len(file), err)
		}
	}
	if _, _, err := segment.Check(bytes.NewReader(append(bytes.Clone(file), 0)), r); err == nil {
		t.Error("a byte behind the end was not noticed")
	}
	// A changed line with a right checksum is found by its block.
	blocks := slices.Clone(facts.Blocks)
	blocks[1][0] ^= 1
	if err := facts.CheckBlocks(blocks); !errors.Is(err, segment.ErrDamaged) ||
		!strings.Contains(err.Error(), "events 1281 to 1536") {
		t.Errorf("another block: %v", err)
	}
	if err := facts.CheckBlocks(blocks[:1]); !errors.Is(err, segment.ErrDamaged) {
		t.Errorf("a block is missing: %v", err)
	}
}

func TestSegmentIndexMutations(t *testing.T) {
	r := segment.Range{Lo: 1024, Hi: 1536}
	file, _ := write(t, r)
	text := indexOf(t, file, r).Encode(nil)
	random := rand.New(rand.NewPCG(3, 9))
	for range ledgertest.Size(50, 200, 1500) {
		damaged := bytes.Clone(text)
		damaged[random.IntN(len(damaged))] ^= 1 << random.IntN(8)
		if _, err := segment.ParseIndex(damaged); !errors.Is(err, segment.ErrDamaged) {
			t.Fatalf("a changed index: %v", err)
		}
		n := random.IntN(len(text))
		if _, err := segment.ParseIndex(text[:n]); !errors.Is(err, segment.ErrDamaged) {
			t.Fatalf("%d of %d bytes of an index: %v", n, len(text), err)
		}
	}
}

func TestWriterRefuses(t *testing.T) {
	r := segment.Range{Lo: 1024, Hi: 1536}
	events := contents(r)
	first := slices.IndexFunc(events, func(e event.Event) bool { return e.Pos > r.Lo })
	next := func(e event.Event) bool { return e.Job != events[0].Job }
	jobEvents := events[:slices.IndexFunc(events, next)]
	for name, given := range map[string][]event.Event{
		"a missing event":         slices.Concat(events[:first+3], events[first+4:]),
		"an event twice":          slices.Concat(events[:first+3], events[first+2:]),
		"a missing end":           events[:len(events)-1],
		"a missing first event":   slices.Concat(events[:first], events[first+1:]),
		"an event behind the end": append(slices.Clone(events), night()[r.Hi]),
		"nothing":                 nil,
		"carried-in jobs mixed": slices.Concat(jobEvents[:1], events[len(jobEvents):first], jobEvents[1:],
			events[first:]),
		"a carried-in worker":      slices.Concat(night()[:1], events),
		"a job without its begin":  slices.Concat(events[1:]),
		"carried-in events at end": slices.Concat(events[first:], events[:first]),
	} {
		w, err := segment.NewWriter(io.Discard, r)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range given {
			if err = w.Add(&e); err != nil {
				break
			}
		}
		if _, closeErr := w.Close(); closeErr == nil {
			t.Errorf("%s: accepted, %v", name, err)
		}
	}
	for _, r := range []segment.Range{{}, {Lo: 256, Hi: 256}, {Lo: 1, Hi: 256}, {Lo: 0, Hi: 255},
		{Lo: -256, Hi: 0}} {
		if _, err := segment.NewWriter(io.Discard, r); err == nil {
			t.Errorf("the range %+v was accepted", r)
		}
	}
}

func TestRangeNames(t *testing.T) {
	for _, r := range []segment.Range{{Lo: 0, Hi: 256}, {Lo: 256, Hi: 1 << 20}, {Lo: 1 << 40, Hi: 1 << 41}} {
		if got, ok := segment.ParseName(r.Name()); !ok || got != r {
			t.Errorf("%s: got %+v, %v", r.Name(), got, ok)
		}
	}
	for _, name := range []string{"", "0-256.jsonl.gz", "0000000000-0000000255.jsonl.gz",
		"0000000256-0000000256.jsonl.gz",
		"0000000000-0000000256.jsonl", "0000000000-0000000256.jsonl.gz.new", "00000000000-0000000256.jsonl.gz"} {
		if r, ok := segment.ParseName(name); ok {
			t.Errorf("%q is the range %+v", name, r)
		}
	}
}

func eventsOf(r segment.Range) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		for _, e := range contents(r) {
			if !yield(e, nil) {
				return
			}
		}
	}
}

func accept(*segment.Facts) error { return nil }

func names(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestCreateTwiceIsOnce(t *testing.T) {
	r := segment.Range{Lo: 512, Hi: 1024}
	dir := filepath.Join(t.TempDir(), "archive")
	first, _, err := segment.Create(dir, r, eventsOf(r), accept)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"0000000512-0000001024.idx", "0000000512-0000001024.jsonl.gz",
		"0000000512-0000001024.sum"}
	if got := names(t, dir); !slices.Equal(got, want) {
		t.Fatalf("files %v, want %v", got, want)
	}
	path := filepath.Join(dir, r.Name())
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v: %v", info.Mode(), err)
	}
	// The same lines, compressed in another way: the file that is there stays.
	lines, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var other bytes.Buffer
	for m, err := range segment.Members(bytes.NewReader(lines)) {
		if err != nil {
			t.Fatal(err)
		}
		z := gzip.NewWriter(&other)
		for _, line := range m.Lines {
			if _, err := z.Write(append(bytes.Clone(line), '\n')); err != nil {
				t.Fatal(err)
			}
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if bytes.Equal(other.Bytes(), lines) {
		t.Fatal("nothing differs")
	}
	if err := os.WriteFile(path, other.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	adopted, _, err := segment.Create(dir, r, eventsOf(r), accept)
	if err != nil || !adopted.SameContent(&first) || adopted.SHA256 != sha256.Sum256(other.Bytes()) {
		t.Fatalf("got %x, %v", adopted.SHA256, err)
	}
	if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, other.Bytes()) {
		t.Errorf("the file was replaced: %v", err)
	}
	index, err := segment.ReadIndex(path, r, adopted.SHA256)
	if err != nil || index.SHA256 != adopted.SHA256 {
		t.Errorf("the index is not of the file: %v", err)
	}
	if _, err := segment.MakeIndex(path, r, first.SHA256); !errors.Is(err, segment.ErrDamaged) {
		t.Errorf("an index of another file: %v", err)
	}
}

func TestCreateReplacesNothing(t *testing.T) {
	r := segment.Range{Lo: 512, Hi: 1024}
	dir := t.TempDir()
	path := filepath.Join(dir, r.Name())
	other, _ := write(t, segment.Range{Lo: 512, Hi: 768})
	for _, there := range [][]byte{nil, []byte("something else\n"), other} {
		if err := os.WriteFile(path, there, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, err := segment.Create(dir, r, eventsOf(r), accept); !errors.Is(err, segment.ErrOther) {
			t.Errorf("%d bytes are there: %v", len(there), err)
		}
		if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, there) {
			t.Errorf("the file was changed: %v", err)
		}
		if got := names(t, dir); len(got) != 1 {
			t.Errorf("files were left: %v", got)
		}
	}
}

// What is not confirmed gets no name, and nothing is left of it.
func TestCreateNeedsConfirmation(t *testing.T) {
	r := segment.Range{Lo: 512, Hi: 1024}
	dir := t.TempDir()
	refused := errors.New("refused")
	var read segment.Facts
	_, _, err := segment.Create(dir, r, eventsOf(r), func(f *segment.Facts) error {
		read = *f
		return refused
	})
	if _, want := write(t, r); !errors.Is(err, refused) || !read.Same(&want) {
		t.Errorf("got %v and %+v", err, read)
	}
	broken := func(yield func(event.Event, error) bool) { yield(event.Event{}, refused) }
	if _, _, err := segment.Create(dir, r, broken, accept); !errors.Is(err, refused) {
		t.Errorf("events that cannot be read: %v", err)
	}
	if got := names(t, dir); len(got) != 0 {
		t.Errorf("files were left: %v", got)
	}
}

// An index that is not the one of the digest is made again from a whole file, and only from that. It is
// written where there is none; another one stays, for [segment.CheckParts] to find and replace.
func TestLoadIndexBelievesADigest(t *testing.T) {
	r := segment.Range{Lo: 512, Hi: 1024}
	dir := t.TempDir()
	f, parts, err := segment.Create(dir, r, eventsOf(r), accept)
	if err != nil {
		t.Fatal(err)
	}
	path, right := filepath.Join(dir, r.Name()), parts.Digests()["idx"]
	name := segment.PartName(path, "idx")
	whole, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	forged := bytes.Clone(whole[:len(whole)-sha256.Size])
	forged[bytes.LastIndex(forged, []byte("01K"))+25] ^= 1
	sum := sha256.Sum256(forged)
	forged = append(forged, sum[:]...)
	if _, err := segment.ParseIndex(forged); err != nil {
		t.Fatalf("it is forged without skill: %v", err)
	}
	for _, there := range [][]byte{{}, whole[:len(whole)-1], append([]byte("x"), whole...), forged, nil, whole} {
		if there == nil {
			err = os.Remove(name)
		} else {
			err = os.WriteFile(name, there, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		x, err := segment.LoadIndex(path, r, f.SHA256, right)
		if bytes.Equal(there, whole) && (err != nil || !bytes.Equal(x.Encode(nil), whole)) ||
			!bytes.Equal(there, whole) && (!errors.Is(err, segment.ErrDamaged) && !errors.Is(err, os.ErrNotExist)) {
			t.Errorf("%d bytes of an index: %v", len(there), err)
		}
		x, err = segment.MakeIndex(path, r, f.SHA256)
		if err != nil || x.Digest() != right || !bytes.Equal(x.Encode(nil), whole) {
			t.Errorf("%d bytes of an index, and it is made again: %v", len(there), err)
		}
		now, err := os.ReadFile(name)
		if err != nil || there != nil && !bytes.Equal(now, there) || there == nil && !bytes.Equal(now, whole) {
			t.Errorf("the index that is there is another one: %v", err)
		}
	}
	for at := 0; at < len(whole); at += ledgertest.Size(97, 31, 1) {
		changed := bytes.Clone(whole)
		changed[at] ^= 1 << (at % 8)
		if err := os.WriteFile(name, changed, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := segment.LoadIndex(path, r, f.SHA256, right); !errors.Is(err, segment.ErrDamaged) {
			t.Fatalf("with another byte %d: %v", at, err)
		}
	}
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("no segment"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := segment.MakeIndex(path, r, f.SHA256); !errors.Is(err, segment.ErrDamaged) {
		t.Errorf("a damaged file: %v", err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, err := segment.MakeIndex(path, r, f.SHA256); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

func TestRemovePartial(t *testing.T) {
	dir := t.TempDir()
	keep := []string{"0000000000-0000000256.idx", "0000000000-0000000256.jsonl.gz",
		"0000000256-0000000512.jsonl.gz.1.new",
		"mine.new", "notes.txt"}
	for _, name := range append([]string{"0000000000-0000000256.jsonl.gz.123.new",
		"0000000000-0000000256.idx.9.new", "0000000000-0000000256.sum.9.new"},
		keep...) {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := segment.RemovePartial(dir, 256); err != nil {
		t.Fatal(err)
	}
	if got := names(t, dir); !slices.Equal(got, keep) {
		t.Errorf("left %v, want %v", got, keep)
	}
	if err := segment.RemovePartial(filepath.Join(dir, "none"), 256); err != nil {
		t.Error(err)
	}
}

func FuzzCheck(f *testing.F) {
	r := segment.Range{Lo: 1024, Hi: 1280}
	file, facts := write(f, r)
	f.Add(file)
	f.Add(file[:100])
	f.Fuzz(func(t *testing.T, file []byte) {
		got, parts, err := segment.Check(bytes.NewReader(file), r)
		if err != nil {
			if !errors.Is(err, segment.ErrDamaged) {
				t.Fatal(err)
			}
			return
		}
		if got.SHA256 != sha256.Sum256(file) || got.Events() != facts.Events() {
			t.Fatalf("%+v", got)
		}
		if _, err := parts.Index(); err != nil {
			t.Fatal(err)
		}
	})
}

func FuzzParseIndex(f *testing.F) {
	r := segment.Range{Lo: 1024, Hi: 1280}
	file, _ := write(f, r)
	whole := indexOf(f, file, r).Encode(nil)
	f.Add(whole[:len(whole)-sha256.Size])
	f.Fuzz(func(t *testing.T, body []byte) {
		sum := sha256.Sum256(body)
		x, err := segment.ParseIndex(append(bytes.Clone(body), sum[:]...))
		if err != nil {
			return
		}
		if got := x.Encode(nil); !bytes.Equal(got[:len(got)-sha256.Size], body) {
			t.Fatal("the index is written in another way")
		}
		for _, id := range x.WithPrefix("", 1<<20) {
			if _, _, ok := x.Find(id); !ok {
				t.Fatalf("%q is not found", id)
			}
		}
	})
}

func BenchmarkWriter(b *testing.B) {
	r := segment.Range{Lo: 0, Hi: 4352}
	events := contents(r)
	var size int64
	for b.Loop() {
		w, err := segment.NewWriter(io.Discard, r)
		if err != nil {
			b.Fatal(err)
		}
		for i := range events {
			if err := w.Add(&events[i]); err != nil {
				b.Fatal(err)
			}
		}
		f, err := w.Close()
		if err != nil {
			b.Fatal(err)
		}
		size = f.Bytes
	}
	b.ReportMetric(float64(size)/float64(len(events)), "bytes/event")
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/float64(len(events)), "us/event")
}
