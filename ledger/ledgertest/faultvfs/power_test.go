//go:build unix

package faultvfs_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/oklog/ulid/v2"

	"jobledger/commands"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
	"jobledger/ledger/ledgertest/faultvfs"
)

var (
	cutsFlag = flag.Int("cuts", 0, "power cuts of all tests; default 30, with -long 1200")
	seedFlag = flag.Uint64("seed", 0, "of the workloads and of the cuts; default random")
	keepFlag = flag.String("keep", "", "folder for the files of the cuts that fail")
)

func cuts() int {
	if *cutsFlag > 0 {
		return *cutsFlag
	}
	return ledgertest.Size(30, 30, 400)
}

// seed returns the seed and logs it, so that the run can be repeated. It does not determine how the commands
// of the clients interleave.
func seed(t *testing.T) uint64 {
	s := *seedFlag
	if s == 0 {
		s = rand.Uint64()
	}
	t.Logf("-seed %d", s)
	return s
}

const (
	full   = "%s"
	normal = "sqlite:%s?sync=normal"
)

// cut is one power cut.
type cut struct {
	moment int
	loss   faultvfs.Loss
	seed   uint64
}

func (c cut) String() string {
	return fmt.Sprintf("power lost at %d, and with it %s (dice %d)", c.moment, c.loss, c.seed)
}

// randomCuts spreads n cuts over a record, with every kind of loss.
func randomCuts(n, length int, dice *rand.Rand) []cut {
	list := make([]cut, n)
	for i := range list {
		list[i] = cut{dice.IntN(length + 1), faultvfs.Loss(i % int(faultvfs.Losses)), dice.Uint64()}
	}
	return list
}

// everyCut returns a cut at each time of a range, with each kind of loss.
func everyCut(from, to int, dice *rand.Rand) (list []cut) {
	for moment := from; moment <= to; moment++ {
		for loss := range faultvfs.Losses {
			list = append(list, cut{moment, loss, dice.Uint64()})
		}
	}
	return list
}

// some returns at most n elements of list.
func some(list []cut, n int, dice *rand.Rand) []cut {
	dice.Shuffle(len(list), func(i, k int) { list[i], list[k] = list[k], list[i] })
	return list[:min(len(list), n)]
}

// replay calls check with the files that each cut leaves, and with a folder for them. It returns how many
// checks failed and reports the first failure.
func (r *recording) replay(t *testing.T, cuts []cut, lie faultvfs.Lie,
	check func(c cut, dir string, files map[string][]byte) error) (failed int64) {
	t.Helper()
	slices.SortFunc(cuts, func(a, b cut) int { return a.moment - b.moment })
	tmp := t.TempDir()
	var failures atomic.Int64
	const workers = 2
	var work []func() error
	for hand := range workers {
		work = append(work, func() error {
			replay := r.NewReplay(lie, true)
			for i := hand; i < len(cuts); i += workers {
				replay.Go(cuts[i].moment)
				files := replay.Crash(cuts[i].loss, rand.New(rand.NewPCG(cuts[i].seed, 0)))
				dir := filepath.Join(tmp, fmt.Sprint(i))
				err := check(cuts[i], dir, files)
				_ = os.RemoveAll(dir)
				if err != nil && failures.Add(1) == 1 {
					t.Logf("%s: %v", cuts[i], err)
					keep(t, files)
				}
			}
			return nil
		})
	}
	_ = inParallel(work...)
	return failures.Load()
}

func keep(t *testing.T, files map[string][]byte) {
	if *keepFlag == "" {
		return
	}
	dir, err := os.MkdirTemp(*keepFlag, "cut")
	for name, content := range files {
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), content, 0o600)
		}
	}
	t.Logf("its files are in %s (%v)", dir, err)
}

// survives checks the state after a cut. After every eighth cut, clients continue and the power fails again.
func (r *recording) survives(c cut, dir string, files map[string][]byte, lossy bool) error {
	if _, ok := files["jobs.db-wal"]; ok && c.seed%3 == 0 {
		files["jobs.db-shm"] = rubbish(c.seed) // the -shm file is never synced
	}
	var second *recording
	left := 0
	disk, err := reopened(dir, files, r.dsn, func(disk *faultvfs.Disk, store *ledger.Store) (err error) {
		if left, err = r.history.after(store, c.moment, lossy); err != nil || c.seed%8 > 0 {
			return err
		}
		second = &recording{dsn: r.dsn}
		second.history, err = workOn(disk, store, left)
		return err
	})
	if err != nil || second == nil {
		return err
	}
	second.Record = disk.Record()
	dice := rand.New(rand.NewPCG(c.seed, 1))
	again := randomCuts(1, second.Len(), dice)[0]
	again.loss = faultvfs.Loss(dice.IntN(int(faultvfs.Losses)))
	replay := second.NewReplay(faultvfs.Lie{}, true)
	replay.Go(again.moment)
	_, err = reopened(dir+"-again", replay.Crash(again.loss, dice), r.dsn,
		func(_ *faultvfs.Disk, store *ledger.Store) error {
			still, err := second.history.after(store, again.moment, lossy)
			if err == nil && still < left {
				err = fmt.Errorf("%d events had come through, and then there were %d", left, still)
			}
			return err
		})
	_ = os.RemoveAll(dir + "-again")
	if err != nil {
		return fmt.Errorf("then %s: %w", again, err)
	}
	return nil
}

func rubbish(seed uint64) []byte {
	b := make([]byte, 32<<10)
	_, _ = rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)}).Read(b)
	return b
}

// workOn sends a few commands to a ledger that has survived a power cut with some events.
func workOn(disk *faultvfs.Disk, store *ledger.Store, old int) (*history, error) {
	queue, c := &commands.Service{Store: store}, &client{disk: disk, actor: "cli:after"}
	var fresh []event.JobID
	for range 3 {
		err := c.ask(false, func() ([]fact, error) {
			answers, err := queue.Enqueue(context.Background(), c.actor,
				commands.Enqueue{Queue: "after", ID: ulid.Make().String()})
			if err != nil {
				return nil, err
			}
			fresh = append(fresh, answers[0].ID)
			return []fact{jobFact(answers[0].ID, 1)}, nil
		})
		if err != nil {
			return nil, fmt.Errorf("work after the cut: %w", err)
		}
	}
	err := c.ask(false, func() ([]fact, error) {
		j, err := queue.Apply(context.Background(), c.actor, fresh[0], commands.Cancel{})
		return promised(j, commands.Cancel{}, err), err
	})
	if err != nil {
		return nil, fmt.Errorf("work after the cut: %w", err)
	}
	return newHistory(store, []*client{c}, old)
}

func TestPowerCutLosesNothingAcknowledged(t *testing.T) {
	seed := seed(t)
	for name, c := range map[string]struct {
		share int // the share of the cuts, in twentieths
		*crowd
	}{
		"one process":      {5, &crowd{dsn: full, stores: 1, clients: 4, commands: 16, large: 6000}},
		"one busy process": {4, &crowd{dsn: full, stores: 1, clients: 12, commands: 6, large: 100}},
		"three processes":  {4, &crowd{dsn: full, stores: 3, clients: 6, commands: 10, large: 6000}},
		// SQLite checkpoints automatically
		"large jobs": {1, &crowd{dsn: full, stores: 1, clients: 4, commands: 12, large: 6000, huge: 4,
			quiet: true}},
		"few commands": {1, &crowd{dsn: full, stores: 2, clients: 1, commands: 6}},
	} {
		t.Run(name, func(t *testing.T) {
			for left := max(1, cuts()*c.share/20); left > 0; left -= 1000 { // then a new recording
				n := min(left, 1000)
				r := c.record(t, seed+uint64(left))
				moved := r.Written("jobs.db", r.made, r.closing[0])
				t.Logf("%d cuts in %d operations, %d events; %d pages were moved before the ledger was closed", n,
					r.Len(), len(r.history.lines), moved)
				if c.quiet && moved == 0 {
					t.Error("SQLite has moved nothing into the database on its own")
				}
				failed := r.replay(t, randomCuts(n, r.Len(), rand.New(rand.NewPCG(seed, 1))), faultvfs.Lie{},
					func(c cut, dir string, files map[string][]byte) error {
						return r.survives(c, dir, files, false)
					})
				if failed > 0 {
					t.Errorf("%d of %d power cuts lost something", failed, n)
				}
			}
		})
	}
}

func TestPowerCutDuringCreation(t *testing.T) {
	seed := seed(t)
	for name, dsn := range map[string]string{"full": full, "normal": normal} {
		t.Run(name, func(t *testing.T) {
			r := (&crowd{dsn: dsn, stores: 1, quiet: true}).record(t, seed)
			dice := rand.New(rand.NewPCG(seed, 1))
			list := randomCuts(cuts()/40, r.Len(), dice)
			if dsn == full {
				list = append(list, everyCut(0, 30, dice)...) // there is no -wal file until then
			}
			list = some(list, cuts()/10, dice)
			failed := r.replay(t, list, faultvfs.Lie{}, func(c cut, dir string, files map[string][]byte) error {
				c.seed &^= 7 // clients continue after the cut
				return r.survives(c, dir, files, dsn == normal)
			})
			if failed > 0 {
				t.Errorf("after %d of %d power cuts there is no ledger", failed, len(list))
			}
		})
	}
}

// The last process that closes a ledger moves the -wal file into the database. Meanwhile the database file
// alone is incomplete.
func TestPowerCutDuringClose(t *testing.T) {
	seed := seed(t)
	r := (&crowd{dsn: full, stores: 1, clients: 2, commands: 16, quiet: true}).record(t, seed)
	dice := rand.New(rand.NewPCG(seed, 1))
	list := some(everyCut(r.closing[0], r.closing[1], dice), cuts()/10, dice)
	failed := r.replay(t, list, faultvfs.Lie{}, func(c cut, dir string, files map[string][]byte) error {
		return r.survives(c, dir, files, false)
	})
	if failed > 0 {
		t.Errorf("%d of %d power cuts lost something", failed, len(list))
	}
	t.Logf("%d cuts in %d operations", len(list), r.closing[1]-r.closing[0])
}

func TestPowerCutWithSyncNormalLosesOnlyTheEnd(t *testing.T) {
	seed := seed(t)
	r := (&crowd{dsn: normal, stores: 2, clients: 4, commands: 24, large: 6000}).record(t, seed)
	failed := func(lossy bool, n int, draw uint64) int64 {
		list := randomCuts(n, r.Len(), rand.New(rand.NewPCG(seed, draw)))
		return r.replay(t, list, faultvfs.Lie{}, func(c cut, dir string, files map[string][]byte) error {
			return r.survives(c, dir, files, lossy)
		})
	}
	n := cuts() / 10
	if bad := failed(true, n, 1); bad > 0 {
		t.Errorf("after %d of %d power cuts the ledger is not a beginning of what it was", bad, n)
	}
	for draw := range uint64(20) {
		if failed(false, 20, draw) > 0 {
			return
		}
	}
	t.Error("400 power cuts lost nothing: then sync=full would be the same")
}

// These tests prove that the oracle detects loss: on a disk that ignores syncs, and with a program that
// answers before its commit.
func TestPowerCutOracleSeesLoss(t *testing.T) {
	seed := seed(t)
	r := (&crowd{dsn: full, stores: 2, clients: 4, commands: 24, large: 6000}).record(t, seed)
	is := func(name string) func(string) bool { return func(file string) bool { return file == name } }
	lies := map[string]faultvfs.Lie{
		"the -wal file is not synced":    {Syncs: is("jobs.db-wal"), From: r.made},
		"the database is not synced":     {Syncs: is("jobs.db"), From: r.made},
		"the folder is not synced":       {Folder: true, From: r.made},
		"nothing is synced":              {Syncs: func(string) bool { return true }, Folder: true, From: r.made},
		"answered before it was durable": {},
	}
	for name, lie := range lies {
		t.Run(name, func(t *testing.T) {
			history := r.history
			if lie.Syncs == nil && !lie.Folder {
				history = r.history.answeredEarly()
			}
			caught := int64(0)
			for n := range uint64(80) {
				list := randomCuts(5, r.Len(), rand.New(rand.NewPCG(seed, n)))
				caught = r.replay(t, list, lie, func(c cut, dir string, files map[string][]byte) error {
					_, err := reopened(dir, files, r.dsn, func(_ *faultvfs.Disk, store *ledger.Store) error {
						_, err := history.after(store, c.moment, false)
						return err
					})
					return err
				})
				if caught > 0 {
					return
				}
			}
			t.Error("400 power cuts cost nothing")
		})
	}
}
