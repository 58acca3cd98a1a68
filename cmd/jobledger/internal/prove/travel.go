package prove

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"jobledger/cmd/jobledger/internal/words"
	"jobledger/ledger"
	"jobledger/ledger/proof"
	"jobledger/ledger/tree"
)

// travelHeader begins the section behind the texts of checkpoints: a line for each, with the time when it was
// handed out, and the place.
const travelHeader = "# jobledger-seals/v1\n"

// noPlace stands for a place that is not known.
const noPlace = "-"

// ExportSeals returns the checkpoints that were handed out, as a file of checkpoints: their texts, and then
// when and to which places.
func ExportSeals(ctx context.Context, tx *ledger.Tx) (file []byte, n int, err error) {
	lines := []byte(travelHeader)
	for s, err := range tree.Seals(ctx, tx) {
		if err != nil {
			return nil, 0, err
		}
		if s.Note == "" {
			continue
		}
		place := s.Place
		if place == "" {
			place = noPlace
		}
		n++
		file = append(file, s.Note...)
		lines = fmt.Appendf(lines, "# %s %s\n", s.At.UTC().Format(time.RFC3339Nano), place)
	}
	return append(file, lines...), n, nil
}

// ImportSeals takes in checkpoints that were handed out of another copy of the ledger: what ExportSeals gave,
// or the file of a place, then without time and place. It takes none unless all of them are of the ledger's
// events. Those that the ledger has are left out. It returns how many it took, and left out. Errors:
// ErrForked; ErrOtherKey; proof.ErrInvalid.
func ImportSeals(ctx context.Context, store *ledger.Store, file []byte) (taken, there int, err error) {
	file = bytes.ReplaceAll(file, []byte("\r\n"), []byte("\n"))
	list, texts, err := ReadKept(file)
	if err != nil {
		return 0, 0, err
	}
	seals, err := sealsOf(list, texts, file)
	if err != nil {
		return 0, 0, err
	}
	err = store.Read(ctx, func(tx *ledger.Tx) error {
		a, err := CompareAll(ctx, tx, list, ByBlocks)
		for _, one := range a.Compared {
			if !one.Same() {
				return fmt.Errorf("%w: %s", ErrForked, one)
			}
		}
		if err != nil {
			return err
		}
		_, keys, err := named(ctx, tx)
		for _, text := range texts {
			by := func(key string) bool { return proof.SignedBy(text, key) }
			if len(keys) > 0 && len(proof.Signers(text)) > 0 && !slices.ContainsFunc(keys, by) {
				return fmt.Errorf("%w; it names %s", ErrOtherKey, keys[len(keys)-1])
			}
		}
		return err
	})
	if err != nil {
		return 0, 0, err
	}
	err = store.Write(ctx, func(tx *ledger.Tx) error {
		type key struct{ note, place string }
		known := make(map[key]bool)
		for s, err := range tree.Seals(ctx, tx) {
			if err != nil {
				return err
			}
			known[key{s.Note, s.Place}] = true
		}
		var added []tree.Seal
		for _, s := range seals {
			if k := (key{s.Note, s.Place}); !known[k] {
				known[k], added = true, append(added, s)
			}
		}
		taken = len(added)
		_, err := tree.AppendSeals(ctx, tx, added...)
		return err
	})
	return taken, len(seals) - taken, err
}

// sealsOf returns the checkpoints of a file as seals, with the times and places that its second section says.
func sealsOf(list []proof.Checkpoint, texts [][]byte, file []byte) (seals []tree.Seal, err error) {
	_, section, said := bytes.Cut(file, []byte("\n"+travelHeader))
	lines := strings.Split(strings.TrimSuffix(string(section), "\n"), "\n")
	if said && len(lines) != len(texts) {
		return nil, fmt.Errorf("%w: %s, and %s about them", proof.ErrInvalid,
			words.Count(int64(len(texts)), "checkpoint"), words.Count(int64(len(lines)), "line"))
	}
	for i, c := range list {
		s := tree.Seal{Size: c.Size, Root: c.Root, Note: string(texts[i])}
		if c.Size < 1 {
			return nil, fmt.Errorf("%w: a checkpoint of no events", proof.ErrInvalid)
		}
		if said {
			at, place, _ := strings.Cut(strings.TrimPrefix(lines[i], "# "), " ")
			if s.At, err = time.Parse(time.RFC3339Nano, at); err != nil || CheckPlace(place) != nil {
				return nil, fmt.Errorf("%w: the line %.80q; it has a time and a place", proof.ErrInvalid, lines[i])
			}
			if place != noPlace {
				s.Place = place
			}
		}
		seals = append(seals, s)
	}
	return seals, nil
}

// CheckPlace returns an error unless name can name a place outside.
func CheckPlace(name string) error { return proof.CheckOrigin(name) }
