package ledger

import (
	"context"
	"fmt"

	"jobledger/ledger/event"
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

func (d *dictionary) keep() { d.newNames, d.newWorkers = d.newNames[:0], d.newWorkers[:0] }

func (d *dictionary) forget() {
	for _, name := range d.newNames {
		delete(d.nameOf, d.names[name])
		delete(d.names, name)
	}
	for _, w := range d.newWorkers {
		delete(d.whoIs, d.workers[w])
		delete(d.workers, w)
	}
	d.keep()
}

// Name returns the number of name in the dictionary, and adds a new name. A name that stays unused, because
// the function failed, does no harm.
func (tx *Tx) Name(ctx context.Context, name string) (int64, error) {
	d := &tx.session.dictionary
	if n, ok := d.names[name]; ok {
		return n, nil
	}
	n, err := tx.numbered(ctx, `SELECT n FROM names WHERE name = ?`, `INSERT INTO names (name) VALUES (?)`, name)
	if err != nil || n == 0 {
		return 0, err
	}
	d.addName(name, n)
	return n, nil
}

// Worker returns the number of w in the dictionary, and adds a new worker; 0 for the zero Worker.
func (tx *Tx) Worker(ctx context.Context, w event.Worker) (int64, error) {
	if w == (event.Worker{}) {
		return 0, nil
	}
	d := &tx.session.dictionary
	if n, ok := d.workers[w]; ok {
		return n, nil
	}
	args := []any{w.Name, w.Boot, w.Host, w.PID, w.Version}
	n, err := tx.numbered(ctx,
		`SELECT n FROM workers WHERE worker = ? AND boot = ? AND host = ? AND pid = ? AND version = ?`,
		`INSERT INTO workers (worker, boot, host, pid, version) VALUES (?, ?, ?, ?, ?)`, args...)
	if err != nil || n == 0 {
		return 0, err
	}
	d.addWorker(w, n)
	return n, nil
}

// NameOf is the inverse of Name.
func (tx *Tx) NameOf(ctx context.Context, n int64) (string, error) {
	d := &tx.session.dictionary
	if name, ok := d.nameOf[n]; ok {
		return name, nil
	}
	rows, err := tx.ask(ctx, `SELECT name FROM names WHERE n = ?`, n)
	if err != nil {
		return "", err
	}
	defer rows.Close()
	var name string
	if !rows.Next() {
		return "", fmt.Errorf("%w: name %d is not in the dictionary", ErrDamaged, n)
	}
	if err := rows.Scan(&name); err != nil {
		return "", err
	}
	d.addName(name, n)
	return name, nil
}

// WorkerOf is the inverse of Worker; the zero Worker for 0.
func (tx *Tx) WorkerOf(ctx context.Context, n int64) (event.Worker, error) {
	d := &tx.session.dictionary
	if w, ok := d.whoIs[n]; ok || n == 0 {
		return w, nil
	}
	rows, err := tx.ask(ctx, `SELECT worker, boot, host, pid, version FROM workers WHERE n = ?`, n)
	if err != nil {
		return event.Worker{}, err
	}
	defer rows.Close()
	var w event.Worker
	if !rows.Next() {
		return event.Worker{}, fmt.Errorf("%w: worker %d is not in the dictionary", ErrDamaged, n)
	}
	if err := rows.Scan(&w.Name, &w.Boot, &w.Host, &w.PID, &w.Version); err != nil {
		return event.Worker{}, err
	}
	d.addWorker(w, n)
	return w, nil
}

func (tx *Tx) number(ctx context.Context, query string, args ...any) (n int64, err error) {
	rows, err := tx.ask(ctx, query, args...)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	if rows.Next() {
		err = rows.Scan(&n)
	}
	if err == nil {
		err = rows.Err()
	}
	return n, err
}

// numbered finds the number of a row, and inserts the row if there is none; 0 in a snapshot. It does not send
// the buffers, because rows of the dictionary depend on nothing in them.
func (tx *Tx) numbered(ctx context.Context, find, insert string, args ...any) (n int64, err error) {
	n, err = tx.number(ctx, find, args...)
	if err != nil || n != 0 || tx.readOnly {
		return n, err
	}
	n, err = tx.session.InsertRow(insert, args)
	return n, tx.check(tx.session.Check(err))
}
