package prove

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"jobledger/cmd/jobledger/internal/words"
	"jobledger/ledger/proof"
)

// Judged is what a proof shows: that events are in a ledger, or that a ledger went on from what it was.
type Judged struct {
	proof.Statement
	Believed                   // the checkpoint; of a consistency the newer one
	Older    *Believed         // of a consistency only
	Lines    []json.RawMessage // the events in full, as the ledger's export has them
}

// Believed is a checkpoint of a proof, and why it may be believed.
type Believed struct {
	proof.Checkpoint
	Signers []string // the names of the keys that the checkpoint says it is signed with
	Checked []string // the public keys of which that was checked, at least one of those given
	Kept    bool     // the checkpoint is one of those that were kept elsewhere
}

// Judge checks the text of a proof of either form, without a ledger: all hashes lead to the roots of its
// checkpoints, each of which is signed with at least one of the public keys and one of kept, where there are
// any. Errors wrap [proof.ErrInvalid] where the proof does not hold.
func Judge(text []byte, keys []string, kept [][]byte) (j Judged, err error) {
	if proof.IsConsistency(text) {
		c, err := proof.ParseConsistency(text)
		if err == nil {
			_, _, err = c.Check()
		}
		if err == nil {
			j.Older = new(Believed)
			*j.Older, err = believe(c.Old, keys, kept)
		}
		if err == nil {
			j.Believed, err = believe(c.New, keys, kept)
		}
		return j, err
	}
	p, err := proof.Parse(text)
	if err != nil {
		return j, err
	}
	if _, err = p.Check(); err != nil {
		return j, err
	}
	if j.Statement, err = p.Statement(); err != nil {
		return j, err
	}
	for _, e := range p.Entries {
		j.Lines = append(j.Lines, e.Leaf)
	}
	j.Believed, err = believe(p.Checkpoint, keys, kept)
	return j, err
}

// believe returns the checkpoint with this text, and why it may be believed.
func believe(text []byte, keys []string, kept [][]byte) (b Believed, err error) {
	if b.Checkpoint, err = proof.ParseCheckpoint(text); err != nil {
		return b, err
	}
	signed := [][]byte{text}
	for _, text := range kept {
		c, err := proof.ParseCheckpoint(text)
		if err != nil {
			return b, err
		}
		if c == b.Checkpoint {
			b.Kept, signed = true, append(signed, text)
		}
	}
	if len(kept) > 0 && !b.Kept {
		return b, fmt.Errorf("%w: its checkpoint, of %d events with root %s, is not the one that was kept",
			proof.ErrInvalid, b.Size, b.Root)
	}
	b.Signers = proof.Signers(text)
	for _, key := range keys { // the one that was kept may have the signature
		if slices.ContainsFunc(signed, func(text []byte) bool { return proof.SignedBy(text, key) }) {
			b.Checked = append(b.Checked, key)
		}
	}
	if len(keys) > 0 && len(b.Checked) == 0 {
		return b, fmt.Errorf("%w: its checkpoint of %d events is not signed with %s", proof.ErrInvalid, b.Size,
			strings.Join(keys, " or "))
	}
	return b, nil
}

// Shows describes what j proves, in sentences without full stops.
func (j Judged) Shows() (lines []string) {
	positions := make([]string, 0, len(j.Events))
	for _, e := range j.Events {
		positions = append(positions, fmt.Sprint(e.Pos))
	}
	where := fmt.Sprintf("in the ledger %s, whose first %s have the root %s", j.Origin,
		words.Count(j.Size, "event"), j.Root)
	which := "the checkpoint is"
	switch {
	case j.Older != nil:
		lines = append(lines, fmt.Sprintf("the first %s, with the root %s, are unchanged %s",
			words.Count(j.Older.Size, "event"), j.Older.Root, where))
		which = "both checkpoints are"
	case j.Job == "":
		lines = append(lines, fmt.Sprintf("event %s is %s", positions[0], where))
	case !j.Whole:
		lines = append(lines, fmt.Sprintf("event %s of job %s, its seq %d, is %s", positions[0], j.Job, j.Seq,
			where))
	default:
		lines = append(lines, fmt.Sprintf("the events %s of job %s are %s", strings.Join(positions, ", "), j.Job,
			where), fmt.Sprintf("they are its events from seq 1 to %d without a gap; after them it was %s", j.Seq,
			j.State))
	}
	keys := j.Checked
	if j.Older != nil {
		keys = slices.Compact(slices.Sorted(slices.Values(slices.Concat(j.Older.Checked, keys))))
	}
	switch {
	case len(keys) > 0:
		lines = append(lines, which+" signed with "+strings.Join(keys, " and with "))
	case j.Kept && j.Older == nil:
		lines = append(lines, which+" the one that was kept")
	case j.Kept:
		lines = append(lines, which+" among those that were kept")
	}
	return lines
}

// NotShown describes what j cannot prove, in sentences without full stops.
func (j Judged) NotShown() (lines []string) {
	switch {
	case len(j.Checked) == 0 && len(j.Signers) > 0:
		lines = append(lines, fmt.Sprintf("who signed the checkpoint: it says %s; --key checks that",
			strings.Join(j.Signers, ", ")))
	case len(j.Checked) == 0:
		lines = append(lines, "who made the checkpoint: it is not signed")
	}
	if len(j.Checked) == 0 && !j.Kept {
		lines = append(lines,
			"that the ledger's history is this one: compare the checkpoint with one that was kept "+
				"elsewhere, by --checkpoint")
	}
	if !j.Whole && j.Job != "" {
		lines = append(lines, "the other events of the job: 'jobledger prove JOB' proves them all")
	}
	if j.Whole {
		lines = append(lines,
			fmt.Sprintf("that the job has no later event, behind event %d; events without a seq, "+
				"such as refused writes, may be left out", j.Events[len(j.Events)-1].Pos))
	}
	if j.Older != nil {
		lines = append(lines, fmt.Sprintf("what the events are, and that there are no later ones, behind event %d",
			j.Size))
	}
	return append(lines, "that what was recorded is true: events say what was written then")
}

// ReadKept returns the checkpoints in a file that was kept, and their texts. A text whose lines end with \r\n
// is the same as one with \n. Errors wrap [proof.ErrInvalid].
func ReadKept(content []byte) (list []proof.Checkpoint, texts [][]byte, err error) {
	if texts, err = proof.SplitCheckpoints(bytes.ReplaceAll(content, []byte("\r\n"), []byte("\n"))); err != nil {
		return nil, nil, err
	}
	for _, text := range texts {
		c, err := proof.ParseCheckpoint(text)
		if err != nil {
			return nil, nil, err
		}
		list = append(list, c)
	}
	return list, texts, nil
}
