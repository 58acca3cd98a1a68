package archive_test

import (
	"cmp"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"jobledger/commands"
	"jobledger/commands/archive"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
)

// On PostgreSQL the space of what has left is used again: periods of equal load, each archived and removed
// while the next one comes, do not let the tables grow. With -long its log says what that takes.
func TestRemovalOnPostgresKeepsTheSize(t *testing.T) {
	t.Parallel()
	dsn := ledgertest.Postgres(t)
	store, err := ledger.Open(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	server, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close(t.Context())
	s, dir := &commands.Service{Store: store}, t.TempDir()
	jobs := cmp.Or(*archivedJobs, ledgertest.Size(200, 200, 1000))
	periods := ledgertest.Size(2, 3, 5)
	if *archivedJobs > 0 {
		periods = 8
	}
	var sizes []int64
	for period := range periods {
		cancelled(t, s, period, jobs)
		began := time.Now()
		due, err := archive.Due(t.Context(), store, 0)
		for err == nil {
			_, err = archive.Close(t.Context(), s, due.Hi, archive.Options{Dir: dir, Actor: actor})
		}
		if !errors.Is(err, archive.ErrNothing) {
			t.Fatal(err)
		}
		closed := time.Since(began)
		m := archive.Removal{Service: s, Dir: dir, Actor: actor}
		steps := 0
		gone, err := m.All(t.Context(), func(event.Removed) { steps++ })
		if err != nil {
			t.Fatal(err)
		}
		removed := time.Since(began) - closed
		// Autovacuum does it within a minute of a removal; the test does not wait for that.
		for _, table := range []string{"events", "jobs", "bodies"} {
			if _, err := server.Exec(t.Context(), "VACUUM jobledger."+table); err != nil {
				t.Fatal(err)
			}
		}
		var size int64
		err = server.QueryRow(t.Context(), `SELECT sum(pg_total_relation_size(oid)) FROM pg_class
WHERE relkind = 'r' AND relname IN ('events', 'jobs', 'bodies', 'past')`).Scan(&size)
		if err != nil {
			t.Fatal(err)
		}
		sizes = append(sizes, size)
		t.Logf("period %d: %d jobs left in %d steps, %s each; closed in %s; the tables have %d bytes", period+1,
			gone.Jobs, steps, removed/time.Duration(max(gone.Jobs, 1)), closed.Round(time.Millisecond), size)
	}
	if last := sizes[len(sizes)-1]; jobs >= 20_000 && last > sizes[1]*5/4 {
		t.Errorf("the tables had %d bytes after two periods, and have %d after %d", sizes[1], last, periods)
	}
	verify(t, store)
}

// cancelled enqueues so many jobs and cancels them.
func cancelled(t *testing.T, s *commands.Service, period, jobs int) {
	t.Helper()
	for from := 0; from < jobs; from += 1000 {
		batch := make([]commands.Enqueue, min(1000, jobs-from))
		for i := range batch {
			batch[i] = commands.Enqueue{Queue: "mail", Payload: fmt.Appendf(nil,
				`{"to":"ada@example.org","template":"welcome","n":"%d of %d"}`, from+i, period)}
		}
		done, err := s.Enqueue(t.Context(), "cli:shop", batch...)
		if err != nil {
			t.Fatal(err)
		}
		ops := make([]commands.Op, len(done))
		for i, j := range done {
			ops[i] = commands.Op{Job: j.Job, Command: commands.Cancel{}}
		}
		results, err := s.ApplyBatch(t.Context(), "cli:shop", ops)
		for _, r := range results {
			err = errors.Join(err, r.Err)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
