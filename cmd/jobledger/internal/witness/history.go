package witness

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"jobledger/cmd/jobledger/internal/words"
)

// Replacement is a line of the history of an address: the ledger there was replaced by one that did not
// continue it. A line is never removed.
type Replacement struct {
	At time.Time `json:"at"`
	// restored: its event explained it. Why an accepted ledger was refused: shorter, differs, renamed or
	// unsealed; same if there was no difference any more.
	What       string `json:"what"`
	Accepted   bool   `json:"accepted"` // by an operator, as were those before
	Actor      string `json:"actor"`    // who accepted or restored it
	Reason     string `json:"reason"`
	Checkpoint string `json:"checkpoint"` // that this host had seen, a text for verify --against; may be empty
}

// Pending describes the last replacement, in one sentence without its full stop; "" if it was accepted.
func (s Seen) Pending() string {
	if n := len(s.History); n > 0 && !s.History[n-1].Accepted {
		return s.History[n-1].Reason
	}
	return ""
}

// readHistory returns the history of an address, as text and as a list.
func (w *Witness) readHistory(address string) (text []byte, list []Replacement, err error) {
	if w.folder == "" {
		return nil, nil, nil
	}
	file := w.place(address, "history")
	text, err = os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	for line := range bytes.Lines(text) {
		var r Replacement
		if err = json.Unmarshal(line, &r); err != nil {
			break
		}
		list = append(list, r)
	}
	if err != nil {
		return nil, nil, &FileError{fmt.Errorf("%s: %w", file, err)}
	}
	return text, list, nil
}

// record saves the previous checkpoint in the history of its address before it is overwritten, if the ledger
// replaces another one or is accepted. Errors: errChanged; *FileError.
func (w *Witness) record(address string, s *Seen, by Replacement) error {
	replaces := s.Before != nil && !s.Before.Same()
	if !replaces && !by.Accepted {
		return nil
	}
	by.At, by.What = by.At.UTC().Truncate(time.Second), "same"
	switch {
	case !replaces:
	case s.Restored != nil:
		by.What = "restored"
	case s.Was == "":
		by.What = string(s.Before.Verdict)
	case s.Sealed:
		by.What = "renamed"
	default:
		by.What = "unsealed"
	}
	if !by.Accepted {
		by.Actor, by.Reason = s.Restored.Actor, s.Difference()
	}
	if s.Before != nil {
		text, err := s.Before.Checkpoint.Sign()
		if err != nil {
			return err
		}
		by.Checkpoint = string(text)
	}
	if n := len(s.History); n > 0 { // another process of this host may have been faster
		last := s.History[n-1]
		if last.At = by.At; last == by {
			return nil
		}
	}
	line, err := words.JSONLine(by)
	if err == nil {
		err = w.replace(w.place(address, "history"), s.history, slices.Concat(s.history, line))
	}
	if err == nil {
		s.History = append(s.History, by)
	}
	return err
}
