package archive_test

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"jobledger/commands"
	"jobledger/commands/archive"
	"jobledger/commands/commandstest"
	"jobledger/commands/load"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
	"jobledger/ledger/proof"
	"jobledger/ledger/segment"
	"jobledger/projection"
	"jobledger/projection/audit"
)

const actor = "cli:ann@host"

// night is the history of testdata/history/bad-night.jsonl.
var night = sync.OnceValue(func() (lines []event.Line) {
	text, err := os.ReadFile(filepath.Join("..", "..", "testdata", "history", "bad-night.jsonl"))
	if err != nil {
		panic(err)
	}
	for line := range bytes.Lines(text) {
		var l event.Line
		if err := l.UnmarshalJSON(bytes.TrimSuffix(line, []byte("\n"))); err != nil {
			panic(err)
		}
		lines = append(lines, l)
	}
	return lines
})

// ofNight returns a ledger with the first events of the night, and what they are.
func ofNight(t *testing.T, count int) *commands.Service {
	t.Helper()
	s := &commands.Service{Store: ledgertest.Open(t)}
	lines := func(yield func(event.Line, error) bool) {
		for _, l := range night()[:count] {
			if !yield(l, nil) {
				return
			}
		}
	}
	if _, err := load.Import(t.Context(), s, actor, "night.jsonl", iter.Seq2[event.Line, error](lines),
		nil); err != nil {
		t.Fatal(err)
	}
	return s
}

// wantContents are the events of the file of r, found in the simplest way.
func wantContents(r segment.Range) (events []event.Event) {
	open, within := make(map[event.JobID]bool), make(map[event.JobID]bool)
	for _, l := range night()[:r.Hi] {
		if l.Job != "" && l.Pos > r.Lo {
			within[l.Job] = true
		} else if l.Job != "" && l.Kind().HasSeq() {
			open[l.Job] = !l.To.Final()
		}
	}
	of := make(map[event.JobID][]event.Event)
	var jobs []event.JobID
	for _, l := range night()[:r.Lo] {
		if l.Job == "" || !open[l.Job] && !within[l.Job] {
			continue
		}
		if of[l.Job] == nil {
			jobs = append(jobs, l.Job)
		}
		of[l.Job] = append(of[l.Job], l.Event)
	}
	for _, job := range jobs {
		events = append(events, of[job]...)
	}
	for _, l := range night()[r.Lo:r.Hi] {
		events = append(events, l.Event)
	}
	return events
}

func linesOf(t *testing.T, path string) (text []byte) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for m, err := range segment.Members(file) {
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range m.Lines {
			text = append(append(text, line...), '\n')
		}
	}
	return text
}

func verify(t *testing.T, store *ledger.Store) {
	t.Helper()
	err := store.Read(t.Context(), func(tx *ledger.Tx) error {
		v, err := audit.Verify(t.Context(), tx, nil)
		if len(v.Findings) > 0 {
			t.Errorf("verify: %+v", v.Findings)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func check(t *testing.T, store *ledger.Store, dir string) (files []archive.File) {
	t.Helper()
	err := archive.Check(t.Context(), store, dir, func(f archive.File) error {
		files = append(files, f)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// closeAll archives everything in files of so many events.
func closeAll(t *testing.T, s *commands.Service, dir string, most func() int64) (done []projection.Segment) {
	t.Helper()
	due, err := archive.Due(t.Context(), s.Store, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	for {
		segment, err := archive.Close(t.Context(), s, due.Hi, archive.Options{Dir: dir, Actor: actor, Most: most()})
		if errors.Is(err, archive.ErrNothing) {
			return done
		}
		if err != nil {
			t.Fatal(err)
		}
		done = append(done, segment)
	}
}

// Whatever the ranges are, each file holds exactly its range, and before it what its jobs were; and what
// archived says is so.
func TestCloseWritesEveryEventOnce(t *testing.T) {
	t.Parallel()
	for seed := range uint64(ledgertest.Size(1, 1, 15)) {
		random := rand.New(rand.NewPCG(seed, 5))
		s := ofNight(t, 1800+random.IntN(len(night())-1800))
		tail := int64(0)
		for l, err := range s.Store.Lines(t.Context(), ledger.Filter{}, false) {
			if tail = l.Pos; err != nil {
				t.Fatal(err)
			}
		}
		dir := filepath.Join(t.TempDir(), "archive")
		done := closeAll(t, s, dir, func() int64 { return proof.BlockSize * (1 + random.Int64N(6)) })
		lo := int64(0)
		for _, d := range done {
			r := segment.Range{Lo: d.Lo, Hi: d.Hi}
			if d.Lo != lo {
				t.Fatalf("a segment from %d to %d after one up to %d", d.Lo, d.Hi, lo)
			}
			lo = d.Hi
			var want []byte
			jobs, carried := make(map[event.JobID]bool), int64(0)
			for _, e := range wantContents(r) {
				want = append(e.AppendLeaf(want), '\n')
				if jobs[e.Job] = true; e.Pos <= r.Lo {
					carried++
				}
			}
			delete(jobs, "")
			path := filepath.Join(dir, r.Name())
			if got := linesOf(t, path); !bytes.Equal(got, want) {
				t.Fatalf("%s has %d bytes of lines, want %d", r.Name(), len(got), len(want))
			}
			file, err := os.ReadFile(path)
			sum := sha256.Sum256(file)
			if err != nil || d.SHA256 != hex.EncodeToString(sum[:]) || d.Bytes != int64(len(file)) ||
				d.Jobs != int64(len(jobs)) || d.CarriedIn != carried || d.Actor != actor ||
				!d.FirstAt.Equal(night()[d.Lo].At) || !d.LastAt.Equal(night()[d.Hi-1].At) {
				t.Fatalf("%+v is not what the file is: %d jobs, %d carried in, %v", d, len(jobs), carried, err)
			}
		}
		if want := tail / proof.BlockSize * proof.BlockSize; lo < want-proof.BlockSize {
			t.Errorf("archived up to %d of %d events", lo, tail)
		}
		for i, f := range check(t, s.Store, dir) {
			if f.State != archive.Present || f.Pos != done[i].Pos {
				t.Errorf("%s is %s: %s", f.Path, f.State, f.Detail)
			}
		}
		if _, err := archive.Due(t.Context(), s.Store, time.Hour); !errors.Is(err, archive.ErrNothing) {
			t.Errorf("there is more to archive: %v", err)
		}
		verify(t, s.Store)
	}
}

// The same events make the same files, whatever keyframes, blocks or jobs' rows there are.
func TestCloseOfACopyWritesTheSameFiles(t *testing.T) {
	t.Parallel()
	one, other := ofNight(t, 2000), ofNight(t, 2000)
	dirs := [2]string{t.TempDir(), t.TempDir()}
	most := func() int64 { return 3 * proof.BlockSize }
	done := closeAll(t, one, dirs[0], most)
	for range 3 { // other rows of jobs, and another tail
		if _, err := other.Enqueue(t.Context(), actor,
			commands.Enqueue{Queue: "mail", Payload: []byte("x")}); err != nil {
			t.Fatal(err)
		}
	}
	again := closeAll(t, other, dirs[1], most)
	if len(done) != len(again) || len(done) < 2 {
		t.Fatalf("%d and %d segments", len(done), len(again))
	}
	for i := range done {
		if done[i].SHA256 != again[i].SHA256 || done[i].Root != again[i].Root {
			t.Errorf("segment %d: %s and %s", i, done[i].SHA256, again[i].SHA256)
		}
	}
}

// If a crash left a whole file without its event, the next Close adopts it.
func TestCloseAdoptsTheFileOfACrash(t *testing.T) {
	s := ofNight(t, 1000)
	dir, spare := t.TempDir(), ofNight(t, 1000)
	first, err := archive.Close(t.Context(), spare, 512, archive.Options{Dir: dir, Actor: actor})
	if err != nil {
		t.Fatal(err)
	}
	left := filepath.Join(dir, segment.Range{Hi: 512}.Name()+".17.new")
	if err := os.WriteFile(left, []byte("half a fi"), 0o600); err != nil {
		t.Fatal(err)
	}
	done, err := archive.Close(t.Context(), s, 512, archive.Options{Dir: dir, Actor: actor})
	if err != nil || done.SHA256 != first.SHA256 {
		t.Fatalf("got %+v, %v", done, err)
	}
	if _, err := os.Stat(left); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what a crash had left is still there: %v", err)
	}
	if files := check(t, s.Store, dir); len(files) != 1 || files[0].State != archive.Present {
		t.Errorf("got %+v", files)
	}
	verify(t, s.Store)
}

// Of several that archive at once, one records the event; no file is lost.
func TestCloseAtOnceIsOnce(t *testing.T) {
	t.Parallel()
	s, dir := ofNight(t, 1000), t.TempDir()
	errs := make(chan error)
	const clients = 4
	for range clients {
		go func() {
			_, err := archive.Close(t.Context(), s, 768, archive.Options{Dir: dir, Actor: actor})
			errs <- err
		}()
	}
	won := 0
	for range clients {
		switch err := <-errs; {
		case err == nil:
			won++
		case !errors.Is(err, commands.ErrConflict) && !errors.Is(err, archive.ErrNothing):
			t.Error(err)
		}
	}
	files := check(t, s.Store, dir)
	if won != 1 || len(files) != 1 || files[0].State != archive.Present {
		t.Errorf("%d succeeded, %+v", won, files)
	}
	verify(t, s.Store)
}

// One that is overtaken by another, which archives less than its range and removes that, says so.
func TestCloseOvertakenByAShorterSegment(t *testing.T) {
	t.Parallel()
	s, dir := ofNight(t, 1600), t.TempDir()
	var once sync.Once
	overtake := commandstest.BeforeWrite{Context: t.Context(), Act: func() {
		once.Do(func() {
			if _, err := archive.Close(t.Context(), s, 256, archive.Options{Dir: dir, Actor: actor}); err != nil {
				t.Error(err)
			}
			m := archive.Removal{Service: s, Dir: dir, Actor: actor}
			if gone, err := m.All(t.Context(), nil); err != nil || gone.Events == 0 {
				t.Errorf("removed %+v, %v", gone, err)
			}
		})
	}}
	_, err := archive.Close(overtake, s, 1024, archive.Options{Dir: dir, Actor: actor})
	if !errors.Is(err, commands.ErrConflict) {
		t.Errorf("got %v", err)
	}
	verify(t, s.Store)
	if _, err := archive.Close(t.Context(), s, 1024, archive.Options{Dir: dir, Actor: actor}); err != nil {
		t.Error(err)
	}
	for _, f := range check(t, s.Store, dir) {
		if f.State != archive.Present {
			t.Errorf("%s is %s: %s", f.Path, f.State, f.Detail)
		}
	}
	verify(t, s.Store)
}

func TestCloseRefusesChangedEvents(t *testing.T) {
	ledgertest.OfSQLite(t)
	s, dir := ofNight(t, 1000), t.TempDir()
	if _, err := archive.Close(t.Context(), s, 256, archive.Options{Dir: dir, Actor: actor}); err != nil {
		t.Fatal(err)
	}
	seal(t, s)
	change(t, s.Store, `DROP TRIGGER events_no_update`, `UPDATE events SET at = at + 1 WHERE pos = 300`)
	_, err := archive.Close(t.Context(), s, 512, archive.Options{Dir: dir, Actor: actor})
	if !errors.Is(err, ledger.ErrDamaged) || !strings.Contains(err.Error(), "257 to 512") {
		t.Errorf("got %v", err)
	}
	entries, err := os.ReadDir(dir)
	if len(entries) != 3 || err != nil {
		t.Errorf("the folder has %v, want a file and its parts: %v", entries, err)
	}
	// What is archived already is not what the events are any more.
	change(t, s.Store, `UPDATE events SET at = at + 1 WHERE pos = 100`)
	err = s.Store.Read(t.Context(), func(tx *ledger.Tx) error {
		v, err := audit.Verify(t.Context(), tx, nil)
		if !slices.ContainsFunc(v.Findings, func(f audit.Finding) bool { return f.Code == audit.FindBlock }) {
			t.Errorf("verify found %+v", v.Findings)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// seal adds the blocks of all events.
func seal(t *testing.T, s *commands.Service) {
	t.Helper()
	_, err := archive.Close(t.Context(), s, 768, archive.Options{Dir: filepath.Join(t.TempDir(), "none\x00"),
		Actor: actor})
	if err == nil {
		t.Fatal("a folder with a NUL was made")
	}
}

func change(t *testing.T, store *ledger.Store, statements ...string) {
	t.Helper()
	err := store.Write(t.Context(), func(tx *ledger.Tx) error {
		for _, statement := range statements {
			if _, err := tx.Exec(statement); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Whatever is wrong with the files, Check names it, and goes on.
func TestCheckFindsEveryFault(t *testing.T) {
	t.Parallel()
	s, dir := ofNight(t, 1600), t.TempDir()
	done := closeAll(t, s, dir, func() int64 { return 512 })
	path := func(i int) string {
		return filepath.Join(dir,
			segment.Range{Lo: done[i].Lo, Hi: done[i].Hi}.Name())
	}
	whole, err := os.ReadFile(path(1))
	if err != nil || len(done) != 3 {
		t.Fatalf("%d segments, %v", len(done), err)
	}
	restore := func() {
		if err := os.WriteFile(path(1), whole, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(what string, state archive.State) {
		t.Helper()
		files := check(t, s.Store, dir)
		for i, f := range files {
			want := archive.Present
			if i == 1 {
				want = state
			}
			if f.State != want || (f.State == archive.Damaged) != (f.Detail != "") {
				t.Errorf("%s: segment %d is %s: %s", what, i, f.State, f.Detail)
			}
		}
	}
	expect("nothing", archive.Present)
	random := rand.New(rand.NewPCG(4, 4))
	for range ledgertest.Size(5, 8, 60) {
		changed := bytes.Clone(whole)
		at := random.IntN(len(changed))
		changed[at] ^= 1 << random.IntN(8)
		if err := os.WriteFile(path(1), changed, 0o600); err != nil {
			t.Fatal(err)
		}
		expect(fmt.Sprintf("byte %d", at), archive.Damaged)
	}
	if err := os.WriteFile(path(1), whole[:len(whole)-9], 0o600); err != nil {
		t.Fatal(err)
	}
	expect("a cut", archive.Damaged)
	if err := os.Remove(path(1)); err != nil {
		t.Fatal(err)
	}
	expect("a missing file", archive.Missing)
	restore()
	expect("repaired", archive.Present)
}

func TestDueIsWholeBlocksThatAreOldEnough(t *testing.T) {
	s := ofNight(t, 1000)
	ninth := night()[899]
	s.Store.Now = func() time.Time { return ninth.At.Add(24 * time.Hour) }
	for _, c := range []struct {
		age time.Duration
		hi  int64
	}{{24 * time.Hour, 768}, {25 * time.Hour, 0}, {1000 * 24 * time.Hour, 0}} {
		due, err := archive.Due(t.Context(), s.Store, c.age)
		if c.hi == 0 {
			if due.Hi > 768 || err == nil && due.Hi >= 768 {
				t.Errorf("%s: got %+v, %v", c.age, due, err)
			}
			continue
		}
		if err != nil || due != (segment.Range{Hi: c.hi}) {
			t.Errorf("%s: got %+v, %v, want %d", c.age, due, err, c.hi)
		}
	}
}

// The archive knows of each job what the ledger knows, up to the end of its newest file; a file that is not
// there is named.
func TestHistoryIsThatOfTheLedger(t *testing.T) {
	t.Parallel()
	s, dir := ofNight(t, 3000), t.TempDir()
	done := closeAll(t, s, dir, func() int64 { return 768 })
	hi := done[len(done)-1].Hi
	want := make(map[event.JobID][]int64)
	var ids []event.JobID
	for _, l := range night()[:hi] {
		if l.Job != "" && want[l.Job] == nil {
			ids = append(ids, l.Job)
		}
		want[l.Job] = append(want[l.Job], l.Pos)
	}
	random := rand.New(rand.NewPCG(8, 8))
	old := ids[0] // a job of which the newest file has nothing
	for range ledgertest.Size(5, 8, 60) {
		id := ids[random.IntN(len(ids))]
		events, f, err := archive.History(t.Context(), s.Store, dir, strings.ToLower(string(id)))
		if err != nil {
			t.Fatal(err)
		}
		var got []int64
		for _, e := range events {
			if e.Job != id || e.N != want[id][0] {
				t.Fatalf("%s: an event of the job %s, number %d", id, e.Job, e.N)
			}
			got = append(got, e.Pos)
		}
		if !slices.Equal(got, want[id]) {
			t.Fatalf("%s: events %v, want %v", id, got, want[id])
		}
		if f.Hi < hi && f.Hi < want[old][0]+1<<40 {
			old = id
		}
	}
	if _, _, err := archive.History(t.Context(), s.Store, dir, string(ids[0][:4])); !errors.Is(err,
		commands.ErrConflict) {
		t.Errorf("many begin with %s: %v", ids[0][:4], err)
	}
	if _, _, err := archive.History(t.Context(), s.Store, dir, "7ZZ"); !errors.Is(err, commands.ErrNoJob) {
		t.Errorf("none begins with 7ZZ: %v", err)
	}
	newest := filepath.Join(dir, segment.Range{Lo: done[len(done)-1].Lo, Hi: hi}.Name())
	text, err := os.ReadFile(newest)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(newest); err != nil {
		t.Fatal(err)
	}
	if _, _, err := archive.History(t.Context(), s.Store, dir, string(old)); !errors.Is(err,
		archive.ErrMissing) ||
		!strings.Contains(err.Error(), newest) {
		t.Errorf("the newest file is not there: %v", err)
	}
	// A changed line whose checksums are right is found by its block, also through an index that is whole.
	forged := forge(t, text)
	if err := os.WriteFile(newest, forged, 0o600); err != nil {
		t.Fatal(err)
	}
	found := false
	for _, id := range slices.Backward(ids) {
		if _, _, err := archive.History(t.Context(), s.Store, dir, string(id)); errors.Is(err, segment.ErrDamaged) {
			found = true
			break
		}
	}
	if !found {
		t.Error("the forged line was not noticed")
	}
	// So are carried-in lines, which are in no block of the file.
	last := done[len(done)-1]
	carried := wantContents(segment.Range{Lo: last.Lo, Hi: last.Hi})[:last.CarriedIn]
	for _, e := range []event.Event{carried[0], carried[len(carried)-1]} {
		if _, _, err := archive.History(t.Context(), s.Store, dir, string(e.Job)); !errors.Is(err,
			segment.ErrDamaged) {
			t.Fatalf("a carried-in job of a forged file: %v", err)
		}
	}
}

// forge returns the segment file with another actor in its last events.
func forge(t *testing.T, file []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	for m, err := range segment.Members(bytes.NewReader(file)) {
		if err != nil {
			t.Fatal(err)
		}
		z, err := gzip.NewWriterLevel(&out, gzip.BestSpeed)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range m.Lines {
			line = bytes.ReplaceAll(line, []byte(`"actor":"worker:`), []byte(`"actor":"worker_`))
			if _, err := z.Write(append(bytes.Clone(line), '\n')); err != nil {
				t.Fatal(err)
			}
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return out.Bytes()
}
