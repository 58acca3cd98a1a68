//go:build unix

package attemptlog

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"jobledger/ledger/event"
)

const (
	someJob  event.JobID = "01KDY9FY8800000000000000AA"
	otherJob event.JobID = "01KDY9FY8800000000000000BB"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// put keeps text as the stdout of the first attempt at a job, as a worker does.
func put(folder string, job event.JobID, text string) error {
	c := New(nil, folder, job, 1, false, DefaultLimit)
	_, _ = c.Write([]byte(text))
	_, err := c.Close()
	return err
}

// get reads it back.
func get(t *testing.T, folder string, job event.JobID) (string, error) {
	t.Helper()
	type answer struct {
		text string
		err  error
	}
	got := make(chan answer, 1)
	go func() {
		f, err := Open(folder, job, 1, false)
		if err != nil {
			got <- answer{"", err}
			return
		}
		defer f.Close()
		text, err := io.ReadAll(f)
		got <- answer{string(text), err}
	}()
	select {
	case a := <-got:
		return a.text, a.err
	case <-time.After(10 * time.Second):
		t.Fatal("it waits")
		return "", nil
	}
}

// What another user has put in the place of a log is not followed, not written and not read.
func TestLogFolderFollowsNothing(t *testing.T) {
	for name, swap := range map[string]func(t *testing.T, file, secret string){
		"a link":      func(t *testing.T, file, secret string) { must(t, os.Symlink(secret, file)) },
		"a hard link": func(t *testing.T, file, secret string) { must(t, os.Link(secret, file)) },
		"a link to another log": func(t *testing.T, file, secret string) {
			must(t, os.Symlink(filepath.Join("..", string(otherJob), "1.out"), file))
		},
		"a named pipe": func(t *testing.T, file, secret string) { must(t, syscall.Mkfifo(file, 0o600)) },
		"a folder":     func(t *testing.T, file, secret string) { must(t, os.Mkdir(file, 0o700)) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			folder, secret := filepath.Join(dir, "jobs.db.logs"), filepath.Join(dir, "secret")
			must(t, os.WriteFile(secret, []byte("precious"), 0o600))
			must(t, put(folder, otherJob, "other"))
			must(t, put(folder, someJob, "first"))
			file := File(folder, someJob, 1, false)
			must(t, os.Remove(file))
			swap(t, file, secret)
			if text, err := get(t, folder, someJob); !errors.Is(err, ErrFolder) {
				t.Errorf("read %q, %v, want ErrFolder", text, err)
			}
			must(t, put(folder, someJob, "chosen by another"))
			if text, err := get(t, folder, someJob); err != nil || text != "chosen by another" {
				t.Errorf("got %q, %v", text, err)
			}
			if text, err := os.ReadFile(secret); err != nil || string(text) != "precious" {
				t.Errorf("the file of the user has %q, %v", text, err)
			}
			if text, err := get(t, folder, otherJob); err != nil || text != "other" {
				t.Errorf("the other log has %q, %v", text, err)
			}
		})
	}
}

// A folder of a job that is a link, and one of all logs that another user has made, are not used.
func TestLogFolderOfAnotherUser(t *testing.T) {
	dir := t.TempDir()
	folder, outside := filepath.Join(dir, "jobs.db.logs"), filepath.Join(dir, "outside")
	must(t, os.Mkdir(outside, 0o700))
	must(t, os.Mkdir(folder, 0o700))
	must(t, os.Symlink(outside, filepath.Join(folder, string(someJob))))
	refused := func(what string) {
		t.Helper()
		if err := put(folder, someJob, "x"); !errors.Is(err, ErrFolder) {
			t.Errorf("%s: write: got %v, want ErrFolder", what, err)
		}
		if _, err := get(t, folder, someJob); !errors.Is(err, ErrFolder) {
			t.Errorf("%s: read: got %v, want ErrFolder", what, err)
		}
		if entries, err := os.ReadDir(outside); err != nil || len(entries) > 0 {
			t.Errorf("%s: outside are %v, %v", what, entries, err)
		}
	}
	refused("the folder of the job is a link")
	must(t, Remove(folder, someJob)) // the link
	if _, err := os.Stat(outside); err != nil {
		t.Error(err)
	}
	must(t, os.Chmod(folder, 0o777))
	refused("every user may write")
	must(t, os.Chmod(folder, 0o700))
	must(t, put(folder, someJob, "x"))
	if os.Geteuid() != 0 {
		return
	}
	must(t, os.Chown(folder, 12345, 12345))
	refused("of another user")
	must(t, os.RemoveAll(folder))
	must(t, os.Symlink(outside, folder))
	must(t, put(folder, someJob, "x")) // a link that root made: another volume
	must(t, os.RemoveAll(filepath.Join(outside, string(someJob))))
	must(t, os.Lchown(folder, 12345, 12345))
	refused("a link of another user")
}

// An id that a damaged ledger has names nothing outside of the folder.
func TestLogFolderTakesJobIDsOnly(t *testing.T) {
	dir := t.TempDir()
	folder, outside := filepath.Join(dir, "jobs.db.logs"), filepath.Join(dir, "outside")
	must(t, os.Mkdir(folder, 0o700))
	must(t, os.Mkdir(outside, 0o700))
	must(t, os.WriteFile(filepath.Join(outside, "1.out"), []byte("x"), 0o600))
	for _, id := range []event.JobID{"", ".", "..", "../outside", "x", "01kdy9fy8800000000000000aa",
		event.JobID(outside), someJob + "/..", "81KDY9FY8800000000000000AA"} {
		_, readErr := get(t, folder, id)
		for what, err := range map[string]error{"write": put(folder, id, "y"), "read": readErr,
			"remove": Remove(folder, id)} {
			if !errors.Is(err, ErrFolder) {
				t.Errorf("%s of %q: got %v, want ErrFolder", what, id, err)
			}
		}
	}
	if text, err := os.ReadFile(filepath.Join(outside, "1.out")); err != nil || string(text) != "x" {
		t.Errorf("got %q, %v", text, err)
	}
}

// The folders and files follow the ledger: its mode, its group, and its owner where root makes them.
func TestLogFolderFollowsLedger(t *testing.T) {
	for mode, want := range map[fs.FileMode][2]fs.FileMode{0o600: {0o700, 0o600}, 0o640: {0o750, 0o640},
		0o660: {0o770, 0o640}, 0o666: {0o770, 0o640}} {
		dir := t.TempDir()
		db := filepath.Join(dir, "jobs.db")
		must(t, os.WriteFile(db, nil, 0o600))
		must(t, put(Folder(db), otherJob, "before it was shared"))
		must(t, os.Chmod(db, mode))
		uid, gid := uint32(os.Geteuid()), uint32(os.Getegid())
		if uid == 0 {
			uid, gid = 12345, 12346
			must(t, os.Chown(db, 12345, 12346))
		}
		must(t, put(Folder(db), someJob, "x"))
		for _, name := range []string{Folder(db), filepath.Join(Folder(db), string(someJob)),
			File(Folder(db), someJob, 1, false)} {
			info, err := os.Stat(name)
			must(t, err)
			wanted := want[1]
			if info.IsDir() {
				wanted = want[0]
			}
			st := info.Sys().(*syscall.Stat_t)
			if info.Mode().Perm() != wanted || st.Uid != uid || st.Gid != gid {
				t.Errorf("ledger %v: %s is %v of %d:%d, want %v of %d:%d", mode, name, info.Mode(), st.Uid, st.Gid,
					wanted, uid, gid)
			}
		}
	}
}

// The folder of a ledger on a server is in one of the user's that may not be there yet.
func TestLogFolderMakesItsParents(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "state", "jobledger", "jobs")
	must(t, put(folder, someJob, "x"))
	if text, err := get(t, folder, someJob); err != nil || text != "x" {
		t.Errorf("got %q, %v", text, err)
	}
	must(t, Remove(folder, someJob))
	if _, err := get(t, folder, someJob); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("after it was removed: %v", err)
	}
}
