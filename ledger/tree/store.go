package tree

import (
	"context"
	"fmt"
	"iter"
	"math"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/failpoint"
	"jobledger/ledger/internal/engine"
	"jobledger/ledger/proof"
)

// Seal is a root of the hash tree that was said: by the command seal, or in a checkpoint that was handed out.
type Seal struct {
	N     int64 // from 1, without gaps
	Size  int64 // how many events are below the root
	At    time.Time
	Root  proof.Hash
	Note  string // the text of the checkpoint that was handed out; "": none was
	Place string // to which it was handed out; "": none, or an older program did not say
}

var (
	insertBlock = engine.NewInsert("blocks", engine.Types{"hash": engine.Bytes}, "n", "hash")
	insertSeal  = engine.NewInsert("seals", engine.Types{"root": engine.Bytes, "note": engine.Text,
		"place": engine.Text}, "n", "size", "at", "root", "note", "place")
)

// maxBlocks is how many blocks the events of all positions make.
const maxBlocks = math.MaxInt64 / proof.BlockSize

// BlockCount returns how many blocks of [proof.BlockSize] events have a hash: the number of the last one, and
// one more. In a damaged ledger this may be more than its events make, but not more than an int64 can count.
func BlockCount(ctx context.Context, tx *ledger.Tx) (n int64, err error) {
	err = first(ctx, tx, []any{&n}, `SELECT coalesce(max(n), -1) FROM blocks`)
	return max(0, min(n, maxBlocks-1)+1), err
}

// StoredBlocks returns the hashes of the blocks from, …, to-1 without those that are not there.
func StoredBlocks(ctx context.Context, tx *ledger.Tx, from, to int64) (hashes []proof.Hash, err error) {
	rows, err := tx.Query(ctx, `SELECT hash FROM blocks WHERE n >= ? AND n < ? ORDER BY n`, from, to)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var b []byte
		if err := rows.Scan(&b); err != nil {
			return nil, err
		}
		h, err := hashOf(b)
		if err != nil {
			return nil, fmt.Errorf("block %d: %w", from+int64(len(hashes)), err)
		}
		hashes = append(hashes, h)
	}
	return hashes, rows.Err()
}

// AppendBlocks stores the hashes of the blocks from number from on. Those that are stored already must be the
// same, so two who add the same blocks may both succeed. Errors: ErrDamaged if one differs, or if the block
// before from is missing.
func AppendBlocks(ctx context.Context, tx *ledger.Tx, from int64, hashes []proof.Hash) error {
	count, err := BlockCount(ctx, tx)
	if err != nil {
		return err
	}
	if from > count {
		return fmt.Errorf("%w: block %d of the hash tree is missing", ledger.ErrDamaged, count)
	}
	stored, err := StoredBlocks(ctx, tx, from, from+int64(len(hashes)))
	if err != nil {
		return err
	}
	for i, h := range stored {
		if h != hashes[i] {
			return fmt.Errorf("%w: block %d of the hash tree is not that of its events", ledger.ErrDamaged,
				from+int64(i))
		}
	}
	for i := len(stored); i < len(hashes); i++ {
		if err := tx.Put(insertBlock, from+int64(i), hashes[i][:]); err != nil {
			return err
		}
		failpoint.Hit("block")
	}
	return nil
}

const sealColumns = `SELECT n, size, at, root, coalesce(note, ''), coalesce(place, '') FROM seals`

// Seals yields the seals in order. An error ends the sequence.
func Seals(ctx context.Context, tx *ledger.Tx) iter.Seq2[Seal, error] {
	return seals(ctx, tx, sealColumns+` ORDER BY n`)
}

// HandedOut yields the checkpoints of the first size events that were handed out. An error ends the sequence.
func HandedOut(ctx context.Context, tx *ledger.Tx, size int64) iter.Seq2[Seal, error] {
	return seals(ctx, tx, sealColumns+` WHERE note IS NOT NULL AND size = ? ORDER BY n`, size)
}

// CountSeals returns how many seals there are, and how many of them are checkpoints that were handed out.
func CountSeals(ctx context.Context, tx *ledger.Tx) (all, handedOut int64, err error) {
	err = first(ctx, tx, []any{&all, &handedOut}, `SELECT count(*), count(note) FROM seals`)
	return all, handedOut, err
}

// LastSeal returns the seal of most events, of several the last one; ok is false if there is none.
func LastSeal(ctx context.Context, tx *ledger.Tx) (s Seal, ok bool, err error) {
	return lastSeal(ctx, tx, sealColumns+` ORDER BY size DESC, n DESC LIMIT 1`)
}

// LastHandedOut is LastSeal among the checkpoints that were handed out.
func LastHandedOut(ctx context.Context, tx *ledger.Tx) (s Seal, ok bool, err error) {
	return lastSeal(ctx, tx, sealColumns+` WHERE note IS NOT NULL ORDER BY size DESC, n DESC LIMIT 1`)
}

func lastSeal(ctx context.Context, tx *ledger.Tx, query string) (s Seal, ok bool, err error) {
	for s, err := range seals(ctx, tx, query) {
		return s, err == nil, err
	}
	return s, false, nil
}

func seals(ctx context.Context, tx *ledger.Tx, query string, args ...any) iter.Seq2[Seal, error] {
	return func(yield func(Seal, error) bool) {
		rows, err := tx.Query(ctx, query, args...)
		if err != nil {
			yield(Seal{}, err)
			return
		}
		defer rows.Close()
		for rows.Next() {
			var s Seal
			var at int64
			var root []byte
			err := rows.Scan(&s.N, &s.Size, &at, &root, &s.Note, &s.Place)
			if err == nil {
				s.At = event.FromMicros(at)
				if s.Root, err = hashOf(root); err != nil {
					err = fmt.Errorf("seal %d: %w", s.N, err)
				}
			}
			if !yield(s, err) || err != nil {
				return
			}
		}
		if err := rows.Err(); err != nil {
			yield(Seal{}, err)
		}
	}
}

// AppendSeals adds seals; it sets their N, and their At if that is zero. Error: ErrDamaged if a seal is of
// more events than there are.
func AppendSeals(ctx context.Context, tx *ledger.Tx, list ...Seal) ([]Seal, error) {
	last, _, err := LastSeal(ctx, tx)
	if err != nil {
		return nil, err
	}
	if tail := tx.Next() - 1; last.Size > tail {
		return nil, fmt.Errorf("%w: seal %d is of %d events, and there are %d", ledger.ErrDamaged, last.N,
			last.Size, tail)
	}
	var n int64
	if err := first(ctx, tx, []any{&n}, `SELECT coalesce(max(n), 0) FROM seals`); err != nil {
		return nil, err
	}
	orNull := func(text string) any {
		if text == "" {
			return nil
		}
		return text
	}
	for i := range list {
		s := &list[i]
		if s.N = n + 1 + int64(i); s.At.IsZero() {
			s.At = tx.At()
		}
		err := tx.Put(insertSeal, s.N, s.Size, event.Micros(s.At), s.Root[:], orNull(s.Note), orNull(s.Place))
		if err != nil {
			return nil, err
		}
	}
	return list, nil
}

func hashOf(b []byte) (h proof.Hash, err error) {
	if len(b) != len(h) {
		return h, fmt.Errorf("%w: a hash of %d bytes", ledger.ErrDamaged, len(b))
	}
	copy(h[:], b)
	return h, nil
}

// first reads the only row of a query into values.
func first(ctx context.Context, tx *ledger.Tx, values []any, query string) error {
	rows, err := tx.Query(ctx, query)
	if err != nil {
		return err
	}
	defer rows.Close()
	if rows.Next() {
		if err := rows.Scan(values...); err != nil {
			return err
		}
	}
	return rows.Err()
}
