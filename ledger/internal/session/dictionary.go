package session

import (
	"context"
	"fmt"

	"jobledger/ledger/event"
	"jobledger/ledger/internal/engine"
)

// dictionary caches the numbers of names and workers for one connection. The numbers that a transaction
// learned are kept only if it commits.
type dictionary struct {
	names   map[string]int64
	nameOf  map[int64]string
	workers map[event.Worker]int64
	whoIs   map[int64]event.Worker

	newNames   []string
	newWorkers []event.Worker
}

func (d *dictionary) addName(name string, n int64) {
	if d.names == nil {
		d.names, d.nameOf = make(map[string]int64), make(map[int64]string)
	}
	d.names[name], d.nameOf[n] = n, name
	d.newNames = append(d.newNames, name)
}

func (d *dictionary) addWorker(w event.Worker, n int64) {
	if d.workers == nil {
		d.workers, d.whoIs = make(map[event.Worker]int64), make(map[int64]event.Worker)
	}
	d.workers[w], d.whoIs[n] = n, w
	d.newWorkers = append(d.newWorkers, w)
}

// KeepNames says that the transaction has committed, or only read what is committed: what was learned since
// the last call holds.
func (d *dictionary) KeepNames() { d.newNames, d.newWorkers = d.newNames[:0], d.newWorkers[:0] }

// ForgetNames says that the transaction was rolled back: what was learned since the last KeepNames may not
// hold any more.
func (d *dictionary) ForgetNames() {
	for _, name := range d.newNames {
		delete(d.nameOf, d.names[name])
		delete(d.names, name)
	}
	for _, w := range d.newWorkers {
		delete(d.whoIs, d.workers[w])
		delete(d.workers, w)
	}
	d.KeepNames()
}

// Knows reports whether these names and this worker have their numbers, as far as the connection has seen.
func (d *dictionary) Knows(w event.Worker, names ...string) bool {
	_, ok := d.workers[w]
	for _, name := range names {
		_, known := d.names[name]
		ok = ok && known
	}
	return ok
}

// Name returns the number of name in the dictionary. A new name is added if add is true; otherwise its
// number is 0.
func (s *Session) Name(ctx context.Context, name string, add bool) (int64, error) {
	if n, ok := s.names[name]; ok {
		return n, nil
	}
	n, err := s.numbered(ctx, add,
		`SELECT n FROM names WHERE name = ?`, `INSERT INTO names (name) VALUES (?)`, name)
	if err != nil || n == 0 {
		return 0, err
	}
	s.addName(name, n)
	return n, nil
}

// Worker is Name for a worker; 0 for the zero Worker.
func (s *Session) Worker(ctx context.Context, w event.Worker, add bool) (int64, error) {
	if w == (event.Worker{}) {
		return 0, nil
	}
	if n, ok := s.workers[w]; ok {
		return n, nil
	}
	n, err := s.numbered(ctx, add,
		`SELECT n FROM workers WHERE worker = ? AND boot = ? AND host = ? AND pid = ? AND version = ?`,
		`INSERT INTO workers (worker, boot, host, pid, version) VALUES (?, ?, ?, ?, ?)`,
		w.Name, w.Boot, w.Host, w.PID, w.Version)
	if err != nil || n == 0 {
		return 0, err
	}
	s.addWorker(w, n)
	return n, nil
}

// numbered finds the number of a row, and inserts the row if there is none and add is true.
func (s *Session) numbered(ctx context.Context, add bool, find, insert string, args ...any) (n int64,
	err error) {
	n, err = s.Int(ctx, find, args...)
	if err != nil || n != 0 || !add {
		return n, err
	}
	n, err = s.InsertRow(insert, args)
	return n, s.Check(err)
}

// NameOf is the inverse of Name; ErrDamaged if there is no such number.
func (s *Session) NameOf(ctx context.Context, n int64) (name string, err error) {
	if name, ok := s.dictionary.nameOf[n]; ok {
		return name, nil
	}
	found, err := s.First(ctx, []any{&name}, `SELECT name FROM names WHERE n = ?`, n)
	if err == nil && !found {
		err = fmt.Errorf("%w: name %d is not in the dictionary", engine.ErrDamaged, n)
	}
	if err != nil {
		return "", err
	}
	s.addName(name, n)
	return name, nil
}

// WorkerOf is the inverse of Worker; the zero Worker for 0.
func (s *Session) WorkerOf(ctx context.Context, n int64) (w event.Worker, err error) {
	if w, ok := s.whoIs[n]; ok || n == 0 {
		return w, nil
	}
	found, err := s.First(ctx, []any{&w.Name, &w.Boot, &w.Host, &w.PID, &w.Version},
		`SELECT worker, boot, host, pid, version FROM workers WHERE n = ?`, n)
	if err == nil && !found {
		err = fmt.Errorf("%w: worker %d is not in the dictionary", engine.ErrDamaged, n)
	}
	if err != nil {
		return event.Worker{}, err
	}
	s.addWorker(w, n)
	return w, nil
}
