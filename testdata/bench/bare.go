package main

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"time"
)

// bare is one connection whose prepared statements go straight to the driver, many rows to a statement: what
// SQL can do where nothing is checked.
type bare struct {
	db    *sql.DB
	conn  *sql.Conn
	raw   driver.ConnPrepareContext
	stmts map[string]driver.Stmt
	turns chan *turn
}

// bareSizes are the numbers of rows that a statement may have.
var bareSizes = [...]int{64, 48, 32, 24, 16, 12, 8, 6, 4, 3, 2, 1}

func openBare(ctx context.Context, f File, pragmas ...string) (b *bare, err error) {
	b = &bare{stmts: map[string]driver.Stmt{}, turns: make(chan *turn, 1024)}
	if b.db, err = f.open(pragmas...); err != nil {
		return nil, err
	}
	if b.conn, err = b.db.Conn(ctx); err == nil {
		err = b.conn.Raw(func(raw any) error {
			b.raw = raw.(driver.ConnPrepareContext)
			return nil
		})
	}
	if err != nil {
		return nil, errors.Join(err, b.db.Close())
	}
	return b, nil
}

func (b *bare) Close() error {
	for _, s := range b.stmts {
		_ = s.Close()
	}
	return errors.Join(b.conn.Close(), b.db.Close())
}

func (b *bare) stmt(text string) (driver.Stmt, error) {
	s, ok := b.stmts[text]
	if ok {
		return s, nil
	}
	s, err := b.raw.PrepareContext(context.Background(), text)
	if err == nil {
		b.stmts[text] = s
	}
	return s, err
}

func named(args []any) []driver.NamedValue {
	values := make([]driver.NamedValue, len(args))
	for i, v := range args {
		if n, ok := v.(int); ok {
			v = int64(n)
		}
		values[i] = driver.NamedValue{Ordinal: i + 1, Value: v}
	}
	return values
}

func (b *bare) exec(text string, args ...any) error {
	s, err := b.stmt(text)
	if err == nil {
		_, err = s.(driver.StmtExecContext).ExecContext(context.Background(), named(args))
	}
	return err
}

// query returns all rows.
func (b *bare) query(text string, args ...any) (all [][]driver.Value, err error) {
	s, err := b.stmt(text)
	if err != nil {
		return nil, err
	}
	rows, err := s.(driver.StmtQueryContext).QueryContext(context.Background(), named(args))
	if err != nil {
		return nil, err
	}
	for {
		row := make([]driver.Value, len(rows.Columns()))
		if err = rows.Next(row); err != nil {
			break
		}
		all = append(all, row)
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return all, errors.Join(err, rows.Close())
}

// insert writes rows of so many values each, which stand in args one after another.
func (b *bare) insert(into string, width int, args []any) error {
	row := "(" + strings.TrimSuffix(strings.Repeat("?,", width), ",") + ")"
	return b.inParts(width, args, func(n int) string {
		return "INSERT INTO " + into + " VALUES " + strings.TrimSuffix(strings.Repeat(row+",", n), ",")
	})
}

// inParts executes the text for n rows until args are used up.
func (b *bare) inParts(width int, args []any, text func(n int) string) error {
	for len(args) > 0 {
		n := 1
		for _, size := range bareSizes {
			if size*width <= len(args) {
				n = size
				break
			}
		}
		if err := b.exec(text(n), args[:n*width]...); err != nil {
			return err
		}
		args = args[n*width:]
	}
	return nil
}

// write runs fn in one transaction.
func (b *bare) write(fn func() error) error {
	if err := b.exec(rawBegin); err != nil {
		return err
	}
	if err := fn(); err != nil {
		return errors.Join(err, b.exec(rawRollback))
	}
	return b.exec(rawCommit)
}

// bareJob is a job that a worker of a bare queue has.
type bareJob struct {
	n, seq  int64
	payload []byte
}

// turn is what a worker asks for: the end of its job, and the next one.
type turn struct {
	ended *bareJob // nil: none
	next  bareJob  // n is 0: there is none
	done  chan error
}

// drain runs workers whose turns share transactions: whatever waits when one begins. carry writes a group of
// turns within a transaction.
func (b *bare) drain(ctx context.Context, workers int, t *Tally, carry func(group []*turn) error) error {
	ended := make(chan error, 1)
	stopped := make(chan struct{})
	go func() { ended <- b.carryOut(stopped, carry) }()
	_, err := together(workers, func() ([]struct{}, error) {
		mine := &turn{done: make(chan error, 1)}
		var held bareJob
		for ctx.Err() == nil || mine.ended != nil {
			start := time.Now()
			b.turns <- mine
			if err := <-mine.done; err != nil {
				return nil, err
			}
			if mine.ended != nil {
				t.Took(time.Since(start))
			}
			if mine.ended = nil; mine.next.n == 0 {
				time.Sleep(time.Millisecond)
				continue
			}
			held = mine.next
			mine.ended = &held
			t.Ran(held.payload)
		}
		return nil, nil
	})
	close(stopped)
	return errors.Join(err, <-ended)
}

// carryOut is the one writer.
func (b *bare) carryOut(stopped <-chan struct{}, carry func(group []*turn) error) error {
	for {
		var group []*turn
		select {
		case first := <-b.turns:
			group = append(group, first)
		case <-stopped:
			return nil
		}
		for idle := 0; idle < 3 && len(group) < 512; {
			select {
			case next := <-b.turns:
				group, idle = append(group, next), 0
			default:
				idle++
				runtime.Gosched()
			}
		}
		err := b.write(func() error { return carry(group) })
		for _, one := range group {
			one.done <- err
		}
		if err != nil {
			return fmt.Errorf("a group of %d: %w", len(group), err)
		}
	}
}
