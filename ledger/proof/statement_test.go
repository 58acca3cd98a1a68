package proof_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"jobledger/ledger/proof"
)

// line is the leaf of an event of a job.
func line(pos int64, job string, seq int64, to string) []byte {
	return fmt.Appendf(nil, `{"pos":%d,"job":%q,"seq":%d,"kind":"claimed","at":"2026-03-14T02:00:00.000000Z",`+
		`"actor":"worker:w1","worker":null,"new":{"pos":[1]},"to_state":%q,"data":{}}`, pos, job, seq, to)
}

func proofOf(leaves ...[]byte) proof.Proof {
	var p proof.Proof
	for _, leaf := range leaves {
		_, rest, _ := bytes.Cut(leaf, []byte(`"pos":`))
		var pos int64
		_, _ = fmt.Sscanf(string(rest), "%d", &pos)
		p.Entries = append(p.Entries, proof.Entry{Leaf: leaf, Index: pos - 1})
	}
	return p
}

func TestStatementOfAJob(t *testing.T) {
	p := proofOf(line(3, "J", 1, "queued"), line(5, "J", 2, "claimed"), line(8, "J", 0, ""),
		line(9, "J", 3, "succeeded"))
	s, err := p.Statement()
	if err != nil {
		t.Fatal(err)
	}
	if s.Job != "J" || s.Seq != 3 || !s.Whole || !s.Ended || s.State != "succeeded" || len(s.Events) != 4 ||
		s.Events[1].Pos != 5 {
		t.Errorf("got %+v", s)
	}
	p = proofOf(line(3, "J", 1, "queued"), line(5, "J", 2, "claimed"))
	if s, err = p.Statement(); err != nil || !s.Whole || s.Ended || s.State != "claimed" {
		t.Errorf("a job that has not ended: got %+v, %v", s, err)
	}
	p = proofOf(line(5, "J", 2, "succeeded"))
	if s, err = p.Statement(); err != nil || s.Whole || s.Ended || s.State != "" || s.Job != "J" {
		t.Errorf("one event: got %+v, %v", s, err)
	}
}

// A presenter may leave entries out, which keeps the others right.
func TestStatementFindsWhatWasTakenOut(t *testing.T) {
	whole := [][]byte{line(3, "J", 1, "queued"), line(5, "J", 2, "claimed"), line(7, "J", 3, "failed"),
		line(9, "J", 4, "queued")}
	for i := range len(whole) - 1 { // without the last one it is the job as it was before
		p := proofOf(slices.Delete(slices.Clone(whole), i, i+1)...)
		if s, err := p.Statement(); !errors.Is(err, proof.ErrInvalid) {
			t.Errorf("without entry %d: got %+v, %v", i, s, err)
		}
	}
	other := proofOf(line(3, "J", 1, "queued"), line(5, "K", 2, "claimed"))
	if s, err := other.Statement(); !errors.Is(err, proof.ErrInvalid) {
		t.Errorf("two jobs: got %+v, %v", s, err)
	}
	moved := proofOf(line(3, "J", 1, "queued"))
	moved.Entries[0].Index++
	if s, err := moved.Statement(); !errors.Is(err, proof.ErrInvalid) {
		t.Errorf("at another position: got %+v, %v", s, err)
	}
}

func TestStatementRefusesLinesThatReadersTakeDifferently(t *testing.T) {
	good := string(line(3, "J", 1, "queued"))
	for _, bad := range []string{
		strings.Replace(good, `"seq":1`, `"seq":2,"seq":1`, 1), strings.Replace(good, `"seq":1,`, ``, 1),
		strings.Replace(good, `"seq":1`, `"seq":"1"`, 1), strings.Replace(good, `"seq":1`, `"seq":1.5`, 1),
		good + `{}`, good[:len(good)-1], `[1]`, `{`, ``, `{"pos":3}`,
	} {
		p := proof.Proof{Entries: []proof.Entry{{Leaf: []byte(bad), Index: 2}}}
		if s, err := p.Statement(); !errors.Is(err, proof.ErrInvalid) {
			t.Errorf("%q: got %+v, %v", bad, s, err)
		}
	}
}

func TestCheckpointsOfAFile(t *testing.T) {
	private, public := keys(t, "jobledger/a")
	var file []byte
	var want [][]byte
	for i := range 4 {
		c := proof.Checkpoint{Origin: "jobledger/a", Size: int64(i), Root: proof.LeafHash(leaf(i))}
		text, err := c.Sign([]string{private, private}[:i%3]...)
		if err != nil {
			t.Fatal(err)
		}
		file, want = append(file, text...), append(want, text)
		if got := proof.SignedBy(text, public); got != (i%3 > 0) {
			t.Errorf("checkpoint %d is signed: %v", i, got)
		}
		if got := len(proof.Signers(text)); got != i%3 {
			t.Errorf("checkpoint %d has %d signers", i, got)
		}
	}
	got, err := proof.SplitCheckpoints(file)
	if err != nil || !slices.EqualFunc(got, want, bytes.Equal) {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
	for _, bad := range [][]byte{nil, []byte("\n"), file[:len(file)-1], append(bytes.Clone(file), "a\n"...),
		append([]byte("\n"), file...)} {
		if got, err := proof.SplitCheckpoints(bad); !errors.Is(err, proof.ErrInvalid) {
			t.Errorf("%q: got %q, %v", bad, got, err)
		}
	}
}
