package attemptlog

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"jobledger/ledger/event"
	"jobledger/ledger/ownerfile"
)

// A user who may write the ledger, or its folder, may put anything into the folder of the logs: links, pipes,
// files of others. So nothing in this package follows a link, waits for a pipe, overwrites what is there, or
// leaves the folder.

// ErrFolder means that the folder of the logs, or something in it, is not as a worker would have made it, so
// it is not used.
var ErrFolder = errors.New("the folder of logs is not to be trusted")

// Suffix is what the folder's name has after that of the ledger's file.
const Suffix = ".logs"

// Folder returns the folder that holds the output of commands for the ledger at path db.
func Folder(db string) string {
	if real, err := filepath.EvalSymlinks(db); err == nil {
		db = real
	}
	return db + Suffix
}

// File returns the file in folder that holds one stream of an attempt. An attempt that writes nothing has
// none. Read it with [Open].
func File(folder string, job event.JobID, attempt int, stderr bool) string {
	return filepath.Join(folder, string(job), fileName(attempt, stderr))
}

func fileName(attempt int, stderr bool) string {
	stream := "out"
	if stderr {
		stream = "err"
	}
	return fmt.Sprintf("%d.%s", attempt, stream)
}

// Open opens the file of one stream of an attempt for reading; an error that wraps [fs.ErrNotExist] if there
// is none. The file is a plain one.
func Open(folder string, job event.JobID, attempt int, stderr bool) (*os.File, error) {
	root, _, err := openFolder(folder, job)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	place, err := openPlace(root, job)
	if err != nil {
		return nil, at(folder, err)
	}
	defer place.Close()
	return openPlain(place, fileName(attempt, stderr))
}

// Remove removes what the attempts of a job wrote from folder. It is not an error if there is nothing.
func Remove(folder string, job event.JobID) error {
	root, _, err := openFolder(folder, job)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer root.Close()
	return at(folder, root.RemoveAll(string(job)))
}

// create makes the file of one stream of an attempt, and the folders that are missing.
func create(folder string, job event.JobID, attempt int, stderr bool) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(folder), 0o700); err != nil { // of a ledger on a server: a user's own
		return nil, err
	}
	if err := os.Mkdir(folder, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	root, share, err := openFolder(folder, job)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	if err := give(root, share); err != nil {
		return nil, at(folder, err)
	}
	if err := root.Mkdir(string(job), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, at(folder, err)
	}
	place, err := openPlace(root, job)
	if err != nil {
		return nil, at(folder, err)
	}
	defer place.Close()
	if err := give(place, share); err != nil {
		return nil, at(folder, err)
	}
	return createPlain(place, fileName(attempt, stderr), share)
}

// shareOf returns how the files in folder are shared.
func shareOf(folder string) ownerfile.Share {
	if db, ok := strings.CutSuffix(folder, Suffix); ok {
		return ownerfile.ShareOf(db)
	}
	return ownerfile.Share{}
}

// give shares a folder of logs as the ledger is shared.
func give(root *os.Root, share ownerfile.Share) error {
	self, err := root.Open(".")
	if err != nil {
		return err
	}
	defer self.Close()
	mode := fs.FileMode(0o700)
	switch {
	case share.GroupWrites():
		mode = 0o770 | fs.ModeSetgid
	case share.GroupReads():
		mode = 0o750 | fs.ModeSetgid
	}
	return share.Give(self, mode)
}

// openFolder opens the folder, and checks it and the id of the job.
func openFolder(folder string, job event.JobID) (root *os.Root, share ownerfile.Share, err error) {
	if !job.IsValid() {
		return nil, share, fmt.Errorf("%w: %q is not the id of a job", ErrFolder, job)
	}
	before, err := os.Stat(folder)
	if err != nil {
		return nil, share, err
	}
	share = shareOf(folder)
	if err := checkLink(folder, share); err != nil {
		return nil, share, err
	}
	if root, err = os.OpenRoot(folder); err != nil {
		return nil, share, err
	}
	opened, err := root.Stat(".")
	switch {
	case err != nil:
	case !os.SameFile(before, opened):
		err = fmt.Errorf("%w: %s was replaced just now", ErrFolder, folder)
	case !share.Trusts(opened):
		err = fmt.Errorf("%w: %s (%s) belongs to another user, or every user may write into it", ErrFolder, folder,
			opened.Mode())
	}
	if err != nil {
		_ = root.Close()
		return nil, share, err
	}
	return root, share, nil
}

// checkLink refuses a folder that is a link, unless one made it who may choose the place of the logs.
func checkLink(folder string, share ownerfile.Share) error {
	link, err := os.Lstat(folder)
	if err == nil && link.Mode()&fs.ModeSymlink != 0 && !share.Owns(link) {
		err = fmt.Errorf("%w: %s is a link that another user has made", ErrFolder, folder)
	}
	return err
}

// openPlace opens the folder of a job.
func openPlace(root *os.Root, job event.JobID) (*os.Root, error) {
	before, err := root.Lstat(string(job))
	if err != nil {
		return nil, err
	}
	if !before.IsDir() {
		return nil, fmt.Errorf("%w: %s in it is %s, not a folder", ErrFolder, job, before.Mode().Type())
	}
	place, err := root.OpenRoot(string(job))
	if err != nil {
		return nil, err
	}
	if opened, err := place.Stat("."); err != nil || !os.SameFile(before, opened) {
		_ = place.Close()
		return nil, fmt.Errorf("%w: %s in it was replaced just now", ErrFolder, job)
	}
	return place, nil
}

// openPlain opens a plain file with no other name for reading.
func openPlain(place *os.Root, name string) (*os.File, error) {
	before, err := place.Lstat(name)
	if err == nil && !ownerfile.Plain(before) {
		err = notPlain(place, name)
	}
	if err != nil {
		return nil, at(place.Name(), err)
	}
	file, err := place.OpenFile(name, os.O_RDONLY|ownerfile.NoWait, 0)
	if err != nil {
		return nil, at(place.Name(), err)
	}
	if info, err := file.Stat(); err != nil || !ownerfile.Plain(info) || !os.SameFile(before, info) {
		_ = file.Close()
		return nil, notPlain(place, name)
	}
	return file, nil
}

func notPlain(place *os.Root, name string) error {
	return fmt.Errorf("%w: %s is not a plain file with one name", ErrFolder, filepath.Join(place.Name(), name))
}

// createTries is how often a name is made free for a new file, which another process may take meanwhile.
const createTries = 3

// createPlain makes a new file. What had its name, perhaps of an attempt before an import, goes.
func createPlain(place *os.Root, name string, share ownerfile.Share) (file *os.File, err error) {
	for range createTries {
		file, err = place.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL|ownerfile.NoWait, 0o600)
		if !errors.Is(err, fs.ErrExist) {
			break
		}
		if err := place.RemoveAll(name); err != nil {
			return nil, at(place.Name(), err)
		}
	}
	if err != nil {
		return nil, at(place.Name(), err)
	}
	mode := fs.FileMode(0o600)
	if share.GroupReads() {
		mode = 0o640
	}
	if err := share.Give(file, mode); err != nil {
		_ = file.Close()
		return nil, err
	}
	return file, nil
}

// at adds the folder to an error of a name in it.
func at(folder string, err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok && !filepath.IsAbs(e.Path) {
		return &fs.PathError{Op: strings.TrimSuffix(e.Op, "at"), Path: filepath.Join(folder, e.Path), Err: e.Err}
	}
	return err
}
