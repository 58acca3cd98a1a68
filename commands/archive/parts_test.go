package archive_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	"jobledger/commands"
	"jobledger/commands/archive"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
	"jobledger/ledger/segment"
	"jobledger/projection"
	"jobledger/projection/audit"
)

// asOfOld makes of a ledger what older programs left: archived events without parts, removed events that do
// not say in which queues the jobs were, and a table that counts these as one number.
func asOfOld(t *testing.T, store *ledger.Store) {
	t.Helper()
	value := `?`
	if ledgertest.OnPostgres(t) {
		value = `CAST(CAST(? AS text) AS json)`
	}
	unguarded(t, store, func(tx *ledger.Tx) error {
		old := make(map[int64]event.Body)
		f := ledger.Filter{Kinds: []event.Kind{event.KindArchived, event.KindRemoved}}
		for e, err := range tx.Events(t.Context(), f) {
			if err != nil {
				return err
			}
			switch b := e.Body.(type) {
			case *event.Archived:
				b.Parts = nil
			case *event.Removed:
				b.Left = nil
			}
			old[e.Pos] = e.Body
		}
		for pos, body := range old {
			data, _ := event.AppendStored(nil, body)
			_, err := tx.Exec(`UPDATE events SET data = `+value+` WHERE pos = ?`, string(data), pos)
			if err != nil {
				return err
			}
		}
		_, err := tx.Exec(`INSERT INTO departed SELECT 0, 0, sum(jobs) FROM departed HAVING sum(jobs) > 0`)
		if err == nil {
			_, err = tx.Exec(`DELETE FROM departed WHERE queue > 0`)
		}
		return err
	})
}

// unguarded changes what the database guards.
func unguarded(t *testing.T, store *ledger.Store, fn func(*ledger.Tx) error) {
	t.Helper()
	err := store.Write(t.Context(), func(tx *ledger.Tx) (err error) {
		if ledgertest.OnPostgres(t) {
			_, err = tx.Exec(`ALTER TABLE events DISABLE TRIGGER USER`)
		} else {
			err = tx.DropGuards(t.Context())
		}
		if err == nil {
			err = fn(tx)
		}
		if err == nil {
			_, err = tx.RepairSchema(t.Context())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// described returns the archive_described events of a ledger.
func described(t *testing.T, store *ledger.Store) (all []event.ArchiveDescribed) {
	t.Helper()
	f := ledger.Filter{Kinds: []event.Kind{event.KindArchiveDescribed}}
	for line, err := range store.Lines(t.Context(), f, false) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, *line.Event.Body.(*event.ArchiveDescribed))
	}
	return all
}

// truth is what the archive answers about jobs.
type truth struct {
	store *ledger.Store
	dir   string
	ids   []event.JobID
	of    map[event.JobID][]event.Event
	lines [sha256.Size]byte
	until int64
}

// truthOf reads what there is to know about jobs that have left, from the first file and from the last.
func truthOf(t *testing.T, s *commands.Service, dir string, until int64) truth {
	t.Helper()
	is := truth{store: s.Store, dir: dir, until: until, of: make(map[event.JobID][]event.Event)}
	var text []byte
	for line, err := range archive.Lines(t.Context(), s.Store, dir, ledger.Filter{Until: until}) {
		if err != nil {
			t.Fatal(err)
		}
		text = line.Event.AppendLeaf(text)
		if e := line.Event; e.Job != "" {
			if is.of[e.Job] == nil {
				is.ids = append(is.ids, e.Job)
			}
			is.of[e.Job] = append(is.of[e.Job], e)
		}
	}
	is.lines = sha256.Sum256(text)
	is.ids = slices.DeleteFunc(is.ids, func(id event.JobID) bool {
		there := false
		err := s.Store.Read(t.Context(), func(tx *ledger.Tx) (err error) {
			_, there, err = projection.Get(t.Context(), tx, id)
			return err
		})
		return err != nil || there
	})
	if len(is.ids) < 20 {
		t.Fatalf("%d jobs have left", len(is.ids))
	}
	return is
}

// ask asks about some jobs, and for all lines. An error is an answer, but that there is no such job.
func (is *truth) ask(t *testing.T, what string, ids ...event.JobID) {
	t.Helper()
	s := &commands.Service{Store: is.store}
	for _, id := range ids {
		events, _, err := archive.History(t.Context(), is.store, is.dir, string(id))
		if errors.Is(err, commands.ErrNoJob) || err == nil && !sameLeaves(events, is.of[id]) {
			t.Errorf("%s: the history of %s has %d events of %d, %v", what, id, len(events), len(is.of[id]), err)
		}
		all := is.of[id]
		for !all[len(all)-1].Kind().HasSeq() {
			all = all[:len(all)-1]
		}
		state, err := archive.Ends(is.store, is.dir)(t.Context(), id)
		if errors.Is(err, commands.ErrNoJob) || err == nil && state != all[len(all)-1].To {
			t.Errorf("%s: the end of %s is %s, %v", what, id, state, err)
		}
		if _, _, err := archive.Erase(t.Context(), s, actor, is.dir, string(id), ""); errors.Is(err,
			commands.ErrNoJob) {
			t.Errorf("%s: erase of %s: %v", what, id, err)
		}
	}
	var text []byte
	for line, err := range archive.Lines(t.Context(), is.store, is.dir, ledger.Filter{}) {
		if err != nil {
			return
		}
		if text = line.Event.AppendLeaf(text); line.Pos == is.until {
			break
		}
	}
	if sha256.Sum256(text) != is.lines {
		t.Errorf("%s: the lines are others", what)
	}
}

func sameLeaves(a, b []event.Event) bool {
	return slices.EqualFunc(a, b, func(a, b event.Event) bool {
		return bytes.Equal(a.AppendLeaf(nil), b.AppendLeaf(nil))
	})
}

// forgeJob returns the index with another id in place of one, and a right checksum.
func forgeJob(t *testing.T, index []byte, id event.JobID) []byte {
	t.Helper()
	forged := bytes.Clone(index[:len(index)-sha256.Size])
	at := bytes.Index(forged, []byte(id))
	if at < 0 {
		t.Fatalf("the index does not have %s", id)
	}
	forged[at+len(id)-1] ^= 1
	sum := sha256.Sum256(forged)
	return append(forged, sum[:]...)
}

// Whatever is in the place of a part of a file, check names it and makes the part again, and until then no
// answer is another one than before; of files that older programs wrote too, described or not.
func TestPartsHideNothing(t *testing.T) {
	t.Parallel()
	s, dir := ofNight(t, 900), t.TempDir()
	done := closeAll(t, s, dir, func() int64 { return 256 })
	m := archive.Removal{Service: s, Dir: dir, Actor: actor, OlderThan: time.Hour}
	if _, err := m.All(t.Context(), nil); err != nil || len(done) != 3 {
		t.Fatalf("%d segments, %v", len(done), err)
	}
	is := truthOf(t, s, dir, 768)
	whole := make(map[string][]byte) // by path
	for _, d := range done {
		for _, end := range []string{"idx", "sum"} {
			path := segment.PartName(filepath.Join(dir, segment.Range{Lo: d.Lo, Hi: d.Hi}.Name()), end)
			text, err := os.ReadFile(path)
			if err != nil || d.Parts[end] != fmt.Sprintf("%x", sha256.Sum256(text)) {
				t.Fatalf("%s is not what archived says: %v", path, err)
			}
			whole[path] = text
		}
	}
	paths := make([]string, 0, len(whole))
	for path := range whole {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	random := rand.New(rand.NewPCG(40, 1))
	attack := func(path string, text []byte, what string, ids ...event.JobID) {
		t.Helper()
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		what = fmt.Sprintf("%s of %s", what, filepath.Base(path))
		is.ask(t, what, ids...)
		for i, f := range check(t, s.Store, dir) {
			want := archive.Present
			if segment.PartName(f.Path, path[len(path)-3:]) == path {
				want = archive.Damaged
			}
			if f.State != want {
				t.Errorf("%s: check says of file %d %s: %s", what, i, f.State, f.Detail)
			}
		}
		if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, whole[path]) {
			t.Errorf("%s: it was not made again: %v", what, err)
		}
	}
	attacks := func(rounds int) {
		for range rounds {
			path := paths[random.IntN(len(paths))]
			text, id := bytes.Clone(whole[path]), is.ids[random.IntN(len(is.ids))]
			at := random.IntN(len(text))
			switch random.IntN(4) {
			case 0:
				attack(path, text[:at], "a cut", id)
			case 1:
				attack(path, append(text, 0), "one byte more", id)
			default:
				text[at] ^= 1 << random.IntN(8)
				attack(path, text, fmt.Sprintf("another byte %d", at), id)
			}
		}
		first, last := is.ids[0], is.ids[len(is.ids)-1]
		for i, path := range paths[:2] {
			attack(path, whole[paths[i+2]], "that of another file", first, last)
		}
		for _, path := range paths {
			if bytes.Contains(whole[path], []byte(last)) && path[len(path)-3:] == "idx" {
				attack(path, forgeJob(t, whole[path], last), "without a job", last)
			}
		}
	}
	attacks(ledgertest.Size(5, 8, 60))

	asOfOld(t, s.Store)
	verify(t, s.Store)
	attacks(ledgertest.Size(3, 5, 40))
	var read []archive.File
	each := func(f archive.File) error {
		read = append(read, f)
		return nil
	}
	if err := os.WriteFile(paths[0], forgeJob(t, whole[paths[0]], is.ids[0]), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := archive.Describe(t.Context(), s, actor, dir, false, each); err != nil || len(read) != 3 {
		t.Fatalf("described %d files, %v", len(read), err)
	}
	all := described(t, s.Store)
	for i, d := range done {
		if len(all) != 3 || all[i].Hi != d.Hi || !reflect.DeepEqual(all[i].Parts, d.Parts) ||
			(len(all[i].Left) > 0) != (i == 2) {
			t.Errorf("described as %+v, and archived as %+v", all, done)
		}
	}
	verify(t, s.Store)
	attacks(ledgertest.Size(0, 0, 20))
	read = nil
	if err := archive.Describe(t.Context(), s, actor, dir, true, each); err != nil || len(read) != 3 ||
		len(described(t, s.Store)) != 3 {
		t.Errorf("described again: %d files, %v", len(read), err)
	}
	verify(t, s.Store)
}

// A file that is not there is described later; then also how the jobs ended that had left.
func TestDescribeNeedsTheFiles(t *testing.T) {
	t.Parallel()
	s, dir := ofNight(t, 1600), t.TempDir()
	done := closeAll(t, s, dir, func() int64 { return 512 })
	m := archive.Removal{Service: s, Dir: dir, Actor: actor, OlderThan: time.Hour}
	gone, err := m.All(t.Context(), nil)
	if err != nil || len(done) != 3 {
		t.Fatalf("%d segments, %v", len(done), err)
	}
	asOfOld(t, s.Store)
	path := func(i int) string {
		return filepath.Join(dir, segment.Range{Lo: done[i].Lo, Hi: done[i].Hi}.Name())
	}
	move := func(from, to string) {
		t.Helper()
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
	}
	hide := func(i int) { move(path(i), path(i)+".away") }
	back := func(i int) { move(path(i)+".away", path(i)) }
	describe := func() (read int, err error) {
		err = archive.Describe(t.Context(), s, actor, dir, false, func(archive.File) error {
			read++
			return nil
		})
		return read, err
	}
	noticed := 0
	ctx := archive.WithNotice(t.Context(), func(f archive.File) { noticed++ })
	old := string(night()[0].Job)
	for _, line := range night() {
		if line.Job != "" {
			old = string(line.Job)
			break
		}
	}
	if _, _, err := archive.History(ctx, s.Store, dir, old); err != nil || noticed == 0 {
		t.Errorf("a job in an archive that is not described: %v, and %d notices", err, noticed)
	}
	hide(1)
	if read, err := describe(); err != nil || read != 3 || len(described(t, s.Store)) != 2 {
		t.Errorf("without a file, %d were described: %v", len(described(t, s.Store)), err)
	}
	back(1)
	hide(0)
	if _, err := describe(); !errors.Is(err, archive.ErrNotDescribed) || !errors.Is(err, archive.ErrMissing) {
		t.Errorf("without what the last one needs: %v", err)
	}
	verify(t, s.Store)
	back(0)
	if read, err := describe(); err != nil || read != 1 {
		t.Errorf("the last one: %d, %v", read, err)
	}
	jobs := int64(0)
	for _, d := range described(t, s.Store) {
		for _, l := range d.Left {
			jobs += l.Jobs()
		}
	}
	if jobs != gone.Jobs {
		t.Errorf("%d jobs are described that left, want %d", jobs, gone.Jobs)
	}
	verify(t, s.Store)

	// What is described twice, or names jobs that did not leave, is found.
	unguarded(t, s.Store, func(tx *ledger.Tx) error {
		_, err := tx.Exec(`UPDATE events SET kind = 36, data = (SELECT data FROM events WHERE kind = 36
ORDER BY pos DESC LIMIT 1) WHERE pos = (SELECT max(pos) FROM events WHERE kind = 33)`)
		return err
	})
	found := make(map[string]bool)
	err = s.Store.Read(t.Context(), func(tx *ledger.Tx) error {
		v, err := audit.Verify(t.Context(), tx, nil)
		for _, f := range v.Findings {
			found[f.Code] = true
		}
		return err
	})
	if err != nil || !found[audit.FindArchived] || !found[audit.FindRemoved] {
		t.Errorf("verify found %v, %v", found, err)
	}
}
