package ledger

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"jobledger/ledger/failpoint"
)

// file is SQLite as an engine: a ledger is one file on a local disk.
type file struct {
	store  *Store // for its settings
	path   string
	info   os.FileInfo // of the file that was opened, to notice another one in its place
	writer *session
	turn   turn
	bell   bell
	reader versionReader // of the one that listens; kept, because SQLite keeps the file of a connection that it closes open
}

// begin lines up for the write lock with others, where they get in the way.
func (f *file) begin(ctx context.Context, since time.Time) (*session, standing, error) {
	immediate := func() error {
		_, err := f.writer.exec(`BEGIN IMMEDIATE`)
		return err
	}
	failpoint.Hit("begin")
	var err error
	linesUp := f.turn.linesUp()
	if !linesUp {
		err = immediate()
		linesUp = isBusy(err) && !f.store.Alone
	}
	if linesUp {
		f.turn.take(ctx, f.path, f.store.lockWait-time.Since(since), isBusy(err))
	}
	if linesUp || isBusy(err) {
		err = retryBusy(ctx, since, f.store.lockWait, immediate)
	}
	if err != nil {
		f.turn.give()
		return nil, standing{}, err
	}
	failpoint.Hit("begun")
	var at standing
	if err = f.same(); err == nil {
		at.tail, at.tailAt, err = f.writer.readTail()
	}
	if err != nil {
		_ = f.rollback()
	}
	return f.writer, at, err
}

func (f *file) commit() error {
	if _, err := f.writer.exec(`COMMIT`); err != nil {
		return fmt.Errorf("%w: %w", ErrUnknown, err)
	}
	failpoint.Hit("committed")
	f.turn.give()
	return nil
}

func (f *file) rollback() error {
	_, err := f.writer.exec(`ROLLBACK`)
	f.turn.give()
	return err
}

func (f *file) snapshot(ctx context.Context) (*session, error) {
	s, err := connect(ctx, readerURL(f.path))
	return s, explain(err)
}

func (f *file) look(_ context.Context, s *session) (standing, error) {
	_, err := s.exec(`BEGIN`)
	return standing{}, err
}

func (f *file) along(_ *Tx, after, until int64) (recordSource, func(), error) {
	rows, err := openStraight(f.path, allEvents, after, until)
	if err != nil {
		return nil, nil, err
	}
	return &straightRows{rows}, rows.close, nil
}

// same compares the file with the one that was opened: commits to a file that was replaced or removed would succeed and
// be lost.
func (f *file) same() error {
	info, err := os.Stat(f.path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(info, f.info) {
		return fmt.Errorf("%w: %s", ErrReplaced, f.path)
	}
	return err
}

// unlessMoved returns err unless the file was exchanged, which may be the reason of any error, and of none.
func (f *file) unlessMoved(err error) error {
	if moved := f.same(); moved != nil {
		return moved
	}
	return err
}

func (f *file) obstacle(err error) error { return withObstacle(f.path, err) }

func (f *file) ring() {
	if !f.store.Alone {
		f.bell.ring(f.path)
	}
}

func (f *file) close() error {
	f.turn.close()
	f.bell.close()
	f.reader.close()
	return f.writer.close()
}
