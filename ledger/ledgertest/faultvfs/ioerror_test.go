//go:build unix

package faultvfs_test

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	sqlite3 "modernc.org/sqlite/lib"

	"jobledger/ledger"
	"jobledger/ledger/ledgertest"
	"jobledger/ledger/ledgertest/faultvfs"
)

var faultsFlag = flag.Int("faults", 0,
	"I/O errors of each kind; default 2, with -short 1, with -long 5; -1: at every call")

func faults() int {
	if *faultsFlag != 0 {
		return *faultsFlag
	}
	return ledgertest.Size(1, 1, 5)
}

// kinds are the kinds of disk failure, with the codes that SQLite's own VFS would return.
var kinds = []faultvfs.Fault{
	{Op: faultvfs.Read, Code: sqlite3.SQLITE_IOERR_READ},
	{Op: faultvfs.Write, Code: sqlite3.SQLITE_IOERR_WRITE},
	{Op: faultvfs.Write, Code: sqlite3.SQLITE_FULL, Half: true},
	{Op: faultvfs.Sync, Code: sqlite3.SQLITE_IOERR_FSYNC},
	{Op: faultvfs.Truncate, Code: sqlite3.SQLITE_IOERR_TRUNCATE},
	{Op: faultvfs.Open, Code: sqlite3.SQLITE_CANTOPEN},
	{Op: faultvfs.Delete, Code: sqlite3.SQLITE_IOERR_DELETE},
	{Op: faultvfs.Access, Code: sqlite3.SQLITE_IOERR_ACCESS},
	{Op: faultvfs.Size, Code: sqlite3.SQLITE_IOERR_FSTAT},
	{Op: faultvfs.Lock, Code: sqlite3.SQLITE_IOERR_LOCK},
	{Op: faultvfs.ShmMap, Code: sqlite3.SQLITE_IOERR_SHMMAP},
	{Op: faultvfs.ShmMap, Code: sqlite3.SQLITE_IOERR_SHMSIZE},
	{Op: faultvfs.ShmLock, Code: sqlite3.SQLITE_IOERR_SHMLOCK},
}

// trial is one run of the script with a fault.
type trial struct {
	fault   faultvfs.Fault
	disk    *faultvfs.Disk
	tmp     string
	want    string // the answers of a run without a fault
	seed    uint64
	failed  int // calls that failed
	errors  int // steps that returned an error
	unknown int // of these, with an unknown outcome; each is also repeated with a power cut at that point
	there   int // of these, those that had been committed
}

func (t *trial) run() error {
	dir := filepath.Join(t.tmp, "disk")
	defer os.RemoveAll(t.tmp)
	disk, unmount, err := faultvfs.MountFiles(dir, nil)
	if err != nil {
		return err
	}
	defer unmount()
	t.disk = disk
	c := newCaller(disk, dir)
	defer func() { _ = c.close() }()
	disk.Fail(t.fault)
	for i := range script {
		if err := t.step(c, i); err != nil {
			return fmt.Errorf("step %d, %s: %w", i, script[i].name, err)
		}
	}
	t.failed = disk.Disarm()
	if err := t.same(c); err != nil {
		return err
	}
	return t.powerCuts(c)
}

// step sends a step until it is answered. The fault may cause one error; a second one fails the trial.
func (t *trial) step(c *caller, i int) error {
	before := c.quietTail()
	c.again = false
	err := c.take(i)
	if err == nil {
		return nil
	}
	t.errors++
	if err := clear(err); err != nil {
		return err
	}
	unknown := errors.Is(err, ledger.ErrUnknown)
	if t.fault.Op == faultvfs.Write && !unknown && !script[i].parts {
		return fmt.Errorf("what is written is written by COMMIT, and its outcome is unknown: %w", err)
	}
	if t.fault.Code == sqlite3.SQLITE_FULL && !errors.Is(err, ledger.ErrFull) {
		return fmt.Errorf("the disk is full, and that is not said: %w", err)
	}
	if unknown {
		t.unknown++
		dice := rand.New(rand.NewPCG(t.seed, uint64(i)))
		loss := faultvfs.Loss(dice.IntN(int(faultvfs.Losses)))
		there, err := t.powerGone(c, i, before, loss, dice)
		if err != nil {
			return err
		}
		if there {
			t.there++
		}
	}
	if after := c.quietTail(); !unknown && !script[i].parts && after != before {
		return fmt.Errorf("it failed (%w), and there are %d events more", err, after-before)
	}
	c.again = true
	if t.fault.Forever {
		if err := t.stuck(c, i); err != nil {
			return err
		}
		t.disk.Disarm()
	}
	if again := c.take(i); again != nil {
		return fmt.Errorf("the fault is over, and still: %w (at first: %w)", again, err)
	}
	return nil
}

// clear checks that an error reports the failing disk and does not blame the ledger.
func clear(err error) error {
	var broken failure
	if errors.As(err, &broken) {
		return err
	}
	for _, wrong := range []error{ledger.ErrDamaged, ledger.ErrNotALedger, ledger.ErrNoLedger,
		ledger.ErrReplaced, ledger.ErrForeignSidecar, ledger.ErrConflict} {
		if errors.Is(err, wrong) {
			return fmt.Errorf("an I/O error is reported as another: %w", err)
		}
	}
	for _, right := range []error{ledger.ErrUnknown, ledger.ErrFull, ledger.ErrIO} {
		if errors.Is(err, right) {
			return nil
		}
	}
	return fmt.Errorf("not one of the errors that a caller can know: %w", err)
}

// stuck checks, while the fault lasts, that operations which do not need the failing part of the disk still
// work.
func (t *trial) stuck(c *caller, i int) error {
	if c.store == nil {
		return nil
	}
	reads := false
	switch t.fault.Op {
	case faultvfs.Write, faultvfs.Sync, faultvfs.Truncate, faultvfs.Delete:
		reads = true
	}
	if _, err := c.tail(); err != nil && reads {
		return fmt.Errorf("no reads while writes fail: %w", err)
	} else if err != nil {
		if err := clear(err); err != nil {
			return err
		}
	}
	if err := c.take(i); err != nil {
		return clear(err)
	}
	return nil
}

// powerGone cuts the power right after the caller got an unknown outcome, and runs the rest of the script on
// what is left. It reports whether the step, before which there were so many events, had been committed.
func (t *trial) powerGone(c *caller, i int, before int64, loss faultvfs.Loss, dice *rand.Rand) (
	there bool, err error) {
	replay := t.disk.Record().NewReplay(faultvfs.Lie{}, true)
	replay.Go(t.disk.Now())
	dir := filepath.Join(t.tmp, "gone")
	disk, unmount, err := faultvfs.MountFiles(dir, replay.Crash(loss, dice))
	if err != nil {
		return false, err
	}
	defer unmount()
	defer os.RemoveAll(dir)
	survivor := c.elsewhere(disk, dir)
	defer func() { _ = survivor.close() }()
	if err := survivor.open(); err != nil {
		return false, fmt.Errorf("then power lost, and with it %s: %w", loss, err)
	}
	there = survivor.quietTail() > before
	survivor.again = true
	for ; i < len(script); i++ {
		if err := survivor.take(i); err != nil {
			return there, fmt.Errorf("then power lost, and with it %s; then step %d, %s: %w", loss, i, script[i].name,
				err)
		}
		survivor.again = false
	}
	if err := t.same(survivor); err != nil {
		return there, fmt.Errorf("then power lost, and with it %s: %w", loss, err)
	}
	return there, nil
}

// same compares the result of the script with the expected one.
func (t *trial) same(c *caller) (err error) {
	var got string
	c.disk.Quietly(func() { got, err = c.summary() })
	if err != nil {
		return err
	}
	gotLines, wantLines := strings.Split(got, "\n"), strings.Split(t.want, "\n")
	for i := range max(len(gotLines), len(wantLines)) {
		switch {
		case i >= len(gotLines):
			return fmt.Errorf("missing: %s", wantLines[i])
		case i >= len(wantLines):
			return fmt.Errorf("too much: %s", gotLines[i])
		case gotLines[i] != wantLines[i]:
			return fmt.Errorf("\n got %s\nwant %s", gotLines[i], wantLines[i])
		}
	}
	return nil
}

// powerCuts cuts the power at several times of the trial.
func (t *trial) powerCuts(c *caller) error {
	h, err := newHistory(c.store, []*client{&c.client}, 0)
	if err != nil {
		return err
	}
	r := &recording{Record: t.disk.Record(), history: h, dsn: full}
	replay := r.NewReplay(faultvfs.Lie{}, true)
	cut := randomCuts(1, r.Len(), rand.New(rand.NewPCG(t.seed, 1000)))[0]
	replay.Go(cut.moment)
	if err := r.survives(cut, filepath.Join(t.tmp, "cut"),
		replay.Crash(cut.loss, rand.New(rand.NewPCG(cut.seed, 0))), false); err != nil {
		return fmt.Errorf("%s: %w", cut, err)
	}
	return nil
}

func TestIOErrorLosesNothingAcknowledged(t *testing.T) {
	seed := seed(t)
	clean := &trial{tmp: filepath.Join(t.TempDir(), "clean"), seed: seed}
	calls := clean.learn(t)
	for _, kind := range kinds {
		for _, forever := range []bool{false, true} {
			kind := kind
			kind.Forever = forever
			t.Run(kind.Kind(), func(t *testing.T) {
				t.Parallel()
				var sum trial
				list := spread(calls[kind.Op], faults(), rand.New(rand.NewPCG(seed, uint64(kind.Code))))
				if faults() < 0 {
					list = append(list, calls[kind.Op]+1)
				}
				for _, n := range list {
					one := &trial{fault: kind.At(n), tmp: filepath.Join(t.TempDir(), fmt.Sprint(n)), want: clean.want,
						seed: seed + uint64(n)}
					stop := time.AfterFunc(2*time.Minute, func() { panic(fmt.Sprintf("%s: it hangs", one.fault)) })
					err := one.run()
					stop.Stop()
					if err != nil {
						t.Errorf("%s: %v", one.fault, err)
					}
					if n > calls[kind.Op] && one.failed > 0 {
						t.Errorf("%s: that many calls there should not be", one.fault)
					}
					sum.add(one)
				}
				t.Logf(
					"%d trials of %d calls: %d failed; %d commands got an error, %d of these an unknown outcome, "+
						"and of these a power cut left %d",
					len(list), calls[kind.Op], sum.failed, sum.errors, sum.unknown, sum.there)
			})
		}
	}
}

// "Unknown" is accurate: after a power cut, the data that COMMIT could not sync may be there or not. When it
// is sent again, each command gets its first answer and is in the ledger once.
func TestUnknownOutcomeIsAppliedOnce(t *testing.T) {
	seed := seed(t)
	clean := &trial{tmp: filepath.Join(t.TempDir(), "clean"), seed: seed}
	calls := clean.learn(t)[faultvfs.Sync]
	fails := faultvfs.Fault{Op: faultvfs.Sync, Code: sqlite3.SQLITE_IOERR_FSYNC}
	found := make(map[faultvfs.Loss]int)
	unknown := 0
	most := faults()
	if most > 0 {
		most = max(most, 10) // most syncs belong to a COMMIT
	}
	for _, n := range spread(calls, most, rand.New(rand.NewPCG(seed, 0))) {
		tmp := filepath.Join(t.TempDir(), fmt.Sprint(n))
		one := &trial{fault: fails.At(n), tmp: tmp, want: clean.want, disk: faultvfs.Mount(t, tmp, nil)}
		c := newCaller(one.disk, tmp)
		one.disk.Fail(one.fault)
		for i := range script {
			before := c.quietTail()
			err := c.take(i)
			if errors.Is(err, ledger.ErrUnknown) {
				unknown++
				for _, loss := range []faultvfs.Loss{faultvfs.LoseNothing, faultvfs.LoseAll} {
					there, err := one.powerGone(c, i, before, loss, rand.New(rand.NewPCG(0, 0)))
					if err != nil {
						t.Errorf("%s: %v", one.fault, err)
					}
					if there {
						found[loss]++
					}
				}
			}
			if err != nil || one.disk.Failed() > 0 {
				break
			}
		}
		_ = c.close()
	}
	t.Logf("%d unknown: %d of them there when nothing was lost, %d when all was", unknown,
		found[faultvfs.LoseNothing], found[faultvfs.LoseAll])
	if found[faultvfs.LoseNothing] == 0 || found[faultvfs.LoseAll] > 0 {
		t.Error("that is not what a disk does")
	}
}

func (t *trial) add(one *trial) {
	t.failed, t.errors, t.unknown, t.there = t.failed+one.failed, t.errors+one.errors, t.unknown+one.unknown,
		t.there+one.there
}

// learn runs the script without a fault and keeps the answers.
func (t *trial) learn(tb testing.TB) [faultvfs.Ops]int {
	tb.Helper()
	t.disk = faultvfs.Mount(tb, t.tmp, nil)
	c := newCaller(t.disk, t.tmp)
	t.disk.Fail(faultvfs.Fault{})
	for i := range script {
		if err := t.step(c, i); err != nil {
			tb.Fatalf("step %d, %s: %v", i, script[i].name, err)
		}
	}
	calls := t.disk.Calls()
	var err error
	if t.want, err = c.summary(); err != nil {
		tb.Fatal(err)
	}
	if err := c.close(); err != nil {
		tb.Fatal(err)
	}
	return calls
}

// spread returns up to most numbers from 1 to n, evenly spread; all of them if most is negative.
func spread(n, most int, dice *rand.Rand) (list []int) {
	if most < 0 || most > n {
		most = n
	}
	for i := range most {
		low, high := i*n/most, (i+1)*n/most
		list = append(list, 1+low+dice.IntN(high-low))
	}
	return list
}
