package ledger

import (
	"cmp"
	"context"
	"database/sql/driver"
	"fmt"
	"iter"
	"slices"

	"jobledger/ledger/internal/engine"
)

// StoredBody is a row of the table bodies, for verification.
type StoredBody struct {
	Pos        int64
	Salt, Body []byte
}

// BodiesAfter yields the stored bodies after pos, in the order of pos.
func (tx *Tx) BodiesAfter(ctx context.Context, pos int64) iter.Seq2[StoredBody, error] {
	return func(yield func(StoredBody, error) bool) {
		var page []StoredBody
		for more := true; more; {
			clear(page)
			var err error
			page, err = tx.someBodies(ctx, pos, page[:0])
			for _, b := range page {
				if !yield(b, nil) {
					return
				}
				pos = b.Pos
			}
			if more = err == nil && len(page) > 0; err != nil {
				yield(StoredBody{}, err)
			}
		}
	}
}

const (
	pageOfBodies  = `SELECT pos, salt, body FROM bodies WHERE pos > ? ORDER BY pos LIMIT 256`
	bodyPageBytes = 4 << 20 // that end a page
)

// someBodies appends the next bodies after pos; none at the end.
func (tx *Tx) someBodies(ctx context.Context, after int64, page []StoredBody) (_ []StoredBody, err error) {
	if of := tx.store.Of; of != nil {
		err := of.Read(ctx, func(tx *Tx) (err error) {
			page, err = tx.someBodies(ctx, after, page)
			return err
		})
		return page, err
	}
	size, wrong := 0, error(nil)
	err = tx.Each(ctx, func(row []driver.Value) bool {
		pos, isPos := row[0].(int64)
		salt, isSalt := row[1].([]byte)
		body, isBody := row[2].([]byte)
		if !isPos || !isSalt && row[1] != nil || !isBody {
			wrong = fmt.Errorf("%w: body %v is not bytes", ErrDamaged, row[0])
			return false
		}
		page = append(page, StoredBody{pos, salt, body})
		size += len(body)
		return size < bodyPageBytes
	}, pageOfBodies, after)
	return page, cmp.Or(err, wrong)
}

// Integrity runs the database's own check, where it has one, and returns what it found wrong.
func (tx *Tx) Integrity(ctx context.Context) (problems []string, err error) {
	if err := tx.flush(); err != nil {
		return nil, err
	}
	return tx.store.engine.Integrity(tx.queryContext(ctx), tx.session.Session)
}

// longLedger is the number of events from which the check of the structure is divided. A variable for the
// tests only.
var longLedger int64 = 20_000

// CheckStructure is Tx.Integrity in several short reads, each on a snapshot of its own. It finds the same,
// except the wrong order of entries in an index of a long ledger's events.
func (s *Store) CheckStructure(ctx context.Context) (problems []string, err error) {
	tail := int64(0)
	err = s.Read(ctx, func(tx *Tx) (err error) {
		if tail, err = tx.Tail(ctx); err == nil && tail <= longLedger {
			problems, err = tx.Integrity(ctx)
		}
		return err
	})
	if err != nil || tail <= longLedger {
		return problems, err
	}
	return s.engine.IntegrityInSteps(ctx, tail, func(fn func(*engine.Session) error) error {
		return s.Read(ctx, func(tx *Tx) error { return fn(tx.session.Session) })
	})
}

// Highest returns the highest pos that there ever was, if the database remembers it.
func (tx *Tx) Highest(ctx context.Context) (pos int64, known bool, err error) {
	if err := tx.flush(); err != nil {
		return 0, false, err
	}
	return tx.store.engine.HighestPos(tx.queryContext(ctx), tx.session.Session)
}

// Guards compares the tables, indexes, triggers and views of the ledger with those that the schema creates,
// and returns what is missing or altered, and triggers that are not part of it. It also compares the tables
// of kinds and states.
func (tx *Tx) Guards(ctx context.Context) (problems []string, err error) {
	diff, err := tx.schemaDiff(ctx)
	for _, o := range diff {
		problems = append(problems, o.String())
	}
	for _, w := range engine.EnumTables() {
		if err != nil {
			break
		}
		var wrong []string
		wrong, err = tx.differing(ctx, w)
		problems = append(problems, wrong...)
	}
	return problems, err
}

// RepairSchema puts indexes, triggers and views back that are missing or altered, and drops triggers that are
// not part of the schema. It creates the given tables again, empty, if they are altered: their content must
// be derived from other tables. It corrects the tables of kinds and states, and returns what it repaired.
func (tx *Tx) RepairSchema(ctx context.Context, tables ...string) (repaired []string, err error) {
	for _, ofTables := range []bool{true, false} { // dropping a table drops its indexes
		diff, err := tx.schemaDiff(ctx)
		if err != nil {
			return nil, err
		}
		for _, o := range diff {
			if (o.Kind == "table") != ofTables || ofTables && !slices.Contains(tables, o.Name) {
				continue
			}
			err := tx.unbuffered(func(s *engine.Session) error { return tx.store.engine.RepairObject(s, o) })
			if err != nil {
				return nil, fmt.Errorf("%s %s: %w", o.Kind, o.Name, err)
			}
			repaired = append(repaired, o.Kind+" "+o.Name)
		}
	}
	diff, err := tx.schemaDiff(ctx)
	if err == nil {
		err = engine.Altered(diff) // a table that holds what happened cannot be derived from others
	}
	if err != nil {
		return nil, err
	}
	for _, w := range engine.EnumTables() {
		problems, err := tx.differing(ctx, w)
		if err == nil && len(problems) > 0 {
			err = tx.unbuffered(w.Repair)
		}
		switch {
		case err != nil:
			return nil, err
		case len(problems) > 0 && !slices.Contains(repaired, "table "+w.Name): // it was created just now
			repaired = append(repaired, "table "+w.Name)
		}
	}
	return repaired, nil
}

// differing returns the differences of the stored table, in sentences.
func (tx *Tx) differing(ctx context.Context, w engine.EnumTable) (problems []string, err error) {
	if err := tx.flush(); err != nil {
		return nil, err
	}
	problems, err = w.Differing(tx.queryContext(ctx), tx.store.engine, tx.session.Session)
	return problems, tx.check(err)
}

// DropGuards drops the guards, which RepairSchema puts back, so that many events are appended faster. It is
// for a ledger that is being made and that nothing else uses. With PostgreSQL it does nothing.
func (tx *Tx) DropGuards(ctx context.Context) error {
	return tx.unbuffered(func(s *engine.Session) error { return tx.store.engine.DropGuards(ctx, s) })
}

// schemaDiff returns the objects of the schema that are not as they should be.
func (tx *Tx) schemaDiff(ctx context.Context) ([]engine.Object, error) {
	if err := tx.flush(); err != nil {
		return nil, err
	}
	return tx.store.engine.SchemaDiff(tx.queryContext(ctx), tx.session.Session)
}
