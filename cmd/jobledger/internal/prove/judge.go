package prove

import (
	"encoding/json"
	"fmt"
	"strings"

	"jobledger/cmd/jobledger/internal/words"
	"jobledger/ledger/proof"
)

// Judged is what a proof shows.
type Judged struct {
	proof.Statement
	proof.Checkpoint
	Lines   []json.RawMessage // the events in full, as the ledger's export has them
	Signers []string          // the names of the keys that the checkpoint says it is signed with
	Checked []string          // the public keys of which that was checked, at least one of those given
	Kept    bool              // the checkpoint is one of those that were kept elsewhere
}

// Judge checks the text of a proof, without a ledger: every event is in the tree of its checkpoint, which is
// signed with at least one of the public keys and one of kept, where there are any. Errors wrap
// [proof.ErrInvalid] where the proof does not hold.
func Judge(text []byte, keys []string, kept [][]byte) (j Judged, err error) {
	p, err := proof.Parse(text)
	if err != nil {
		return j, err
	}
	if j.Checkpoint, err = p.Check(); err != nil {
		return j, err
	}
	if j.Statement, err = p.Statement(); err != nil {
		return j, err
	}
	for _, e := range p.Entries {
		j.Lines = append(j.Lines, e.Leaf)
	}
	signed := [][]byte{p.Checkpoint}
	for _, text := range kept {
		c, err := proof.ParseCheckpoint(text)
		if err != nil {
			return j, err
		}
		if c == j.Checkpoint {
			j.Kept, signed = true, append(signed, text)
		}
	}
	if len(kept) > 0 && !j.Kept {
		return j, fmt.Errorf("%w: its checkpoint, of %d events with root %s, is not the one that was kept",
			proof.ErrInvalid, j.Size, j.Root)
	}
	j.Signers = proof.Signers(p.Checkpoint)
	for _, key := range keys {
		for _, text := range signed { // the one that was kept may have the signature
			if proof.SignedBy(text, key) {
				j.Checked = append(j.Checked, key)
				break
			}
		}
	}
	if len(keys) > 0 && len(j.Checked) == 0 {
		return j, fmt.Errorf("%w: its checkpoint is not signed with %s", proof.ErrInvalid,
			strings.Join(keys, " or "))
	}
	return j, nil
}

// Shows describes what j proves, in sentences without full stops.
func (j Judged) Shows() (lines []string) {
	positions := make([]string, 0, len(j.Events))
	for _, e := range j.Events {
		positions = append(positions, fmt.Sprint(e.Pos))
	}
	where := fmt.Sprintf("in the ledger %s, whose first %s have the root %s", j.Origin,
		words.Count(j.Size, "event"), j.Root)
	switch {
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
	switch {
	case len(j.Checked) > 0:
		lines = append(lines, "the checkpoint is signed with "+strings.Join(j.Checked, " and with "))
	case j.Kept:
		lines = append(lines, "the checkpoint is the one that was kept")
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
	return append(lines, "that what was recorded is true: events say what was written then")
}
