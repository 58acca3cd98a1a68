package prove

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/prove"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/ledger"
	"jobledger/ledger/proof"
	"jobledger/projection/audit"
)

// verifyFlags checks which flags of verify go with each other.
func verifyFlags(c *cli.Context) error {
	isProof, against := c.IsSet("proof"), c.IsSet("against")
	for _, name := range []string{"logs", "since", "against"} {
		if isProof && c.IsSet(name) {
			return cli.Usagef("--proof and --%s cannot be combined: a proof is checked without the ledger", name)
		}
	}
	switch {
	case against && c.IsSet("since"):
		return cli.Usagef("--against and --since cannot be combined: a checkpoint is of all events")
	case c.IsSet("checkpoint") && !isProof:
		return cli.Usagef("--checkpoint needs --proof; --against compares the ledger with checkpoints")
	case c.IsSet("key") && !isProof && !against:
		return cli.Usagef("--key needs --proof or --against")
	}
	return nil
}

// publicKeys reads the values of --key: a public key, or a file with one.
func publicKeys(c *cli.Context) (keys []string, err error) {
	for _, word := range c.StringSlice("key") {
		key := strings.TrimSpace(word)
		if proof.CheckKey(key) != nil {
			if key, err = prove.PublicKey(word); err != nil {
				return nil, cli.WithHint(cli.Usagef("--key: %w", err), "a public key has the form NAME+HASH+KEY")
			}
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// keptFile reads a file with checkpoints that were kept, - for standard input.
func (p *Verbs) keptFile(flag, file string) (list []proof.Checkpoint, texts [][]byte, err error) {
	content, err := p.input(flag, file)
	if err != nil {
		return nil, nil, err
	}
	if list, texts, err = prove.ReadKept(content); err != nil {
		return nil, nil, cli.Exitf(cli.ExitDiscrepancy, "--%s: %s: %w", flag, file, err)
	}
	return list, texts, nil
}

// input returns what is in the file that a flag names, - for standard input.
func (p *Verbs) input(flag, file string) ([]byte, error) {
	content, done, err := p.OpenInput("--"+flag, file)
	if err != nil {
		return nil, err
	}
	defer done()
	return io.ReadAll(content)
}

// verifyProof checks a proof. It opens no ledger.
func (p *Verbs) verifyProof(c *cli.Context) error {
	keys, err := publicKeys(c)
	if err != nil {
		return err
	}
	var kept [][]byte
	for _, file := range c.StringSlice("checkpoint") {
		_, texts, err := p.keptFile("checkpoint", file)
		if err != nil {
			return err
		}
		kept = append(kept, texts...)
	}
	text, err := p.input("proof", c.String("proof"))
	if err != nil {
		return err
	}
	j, err := prove.Judge(text, keys, kept)
	if err != nil {
		return p.proofFails(err)
	}
	if p.JSON {
		return p.PrintJSON(judgedJSON(j))
	}
	for i, line := range j.Shows() {
		if err := p.PrintLine([]string{"ok: ", "    "}[min(i, 1)] + line); err != nil {
			return err
		}
	}
	for _, e := range j.Events {
		line := fmt.Sprintf("    %6d  %s  %-14s by %s", e.Pos, e.At, e.Kind, e.Actor)
		if err := p.PrintLine(line); err != nil {
			return err
		}
	}
	if err := p.PrintLine("not proven:"); err != nil {
		return err
	}
	for _, line := range j.NotShown() {
		if err := p.PrintLine("  - " + line); err != nil {
			return err
		}
	}
	return nil
}

// proofFails is the error of a proof that does not hold, which with --json is also data.
func (p *Verbs) proofFails(err error) error {
	if !errors.Is(err, proof.ErrInvalid) {
		return err
	}
	if p.JSON {
		printErr := p.PrintJSON(struct {
			OK     bool   `json:"ok"`
			Detail string `json:"detail"`
		}{false, err.Error()})
		err = errors.Join(err, printErr)
	}
	return cli.Exitf(cli.ExitDiscrepancy, "the proof does not hold: %w", err)
}

// judgedJSON is j for programs.
func judgedJSON(j prove.Judged) any {
	list := func(of []string) []string { return append([]string{}, of...) }
	if j.Older != nil {
		type checkpoint struct {
			Size    int64    `json:"size"`
			Root    string   `json:"root"`
			Signers []string `json:"signers"`
			Checked []string `json:"keys"`
			Kept    bool     `json:"kept"`
		}
		of := func(b prove.Believed) checkpoint {
			return checkpoint{b.Size, b.Root.String(), list(b.Signers), list(b.Checked), b.Kept}
		}
		return struct {
			OK     bool       `json:"ok"`
			Origin string     `json:"origin"`
			Older  checkpoint `json:"older"`
			Newer  checkpoint `json:"newer"`
			Not    []string   `json:"not_proven"`
		}{true, j.Origin, of(*j.Older), of(j.Believed), j.NotShown()}
	}
	return struct {
		OK      bool              `json:"ok"`
		Origin  string            `json:"origin"`
		Size    int64             `json:"size"`
		Root    string            `json:"root"`
		Job     *string           `json:"job"`
		Whole   bool              `json:"whole"`
		Seq     int64             `json:"seq"`
		State   *string           `json:"state"`
		Ended   bool              `json:"ended"`
		Signers []string          `json:"signers"`
		Checked []string          `json:"keys"`
		Kept    bool              `json:"kept"`
		Events  []json.RawMessage `json:"events"`
		Not     []string          `json:"not_proven"`
	}{true, j.Origin, j.Size, j.Root.String(), words.TextOrNull(j.Job), j.Whole, j.Seq,
		words.TextOrNull(j.State), j.Ended,
		list(j.Signers), list(j.Checked), j.Kept, j.Lines, j.NotShown()}
}

// keptCheckpoints are those that were kept elsewhere, each with the name of its file.
type keptCheckpoints struct {
	list  []proof.Checkpoint
	files []string
}

// readAgainst reads the files of --against. With --key, every checkpoint must be signed with one of the keys.
func (p *Verbs) readAgainst(c *cli.Context) (kept keptCheckpoints, err error) {
	keys, err := publicKeys(c)
	if err != nil {
		return kept, err
	}
	for _, file := range c.StringSlice("against") {
		list, texts, err := p.keptFile("against", file)
		if err != nil {
			return kept, err
		}
		for i, text := range texts {
			ok := len(keys) == 0
			for _, key := range keys {
				ok = ok || proof.SignedBy(text, key)
			}
			if !ok {
				return kept, cli.Exitf(cli.ExitDiscrepancy, "%s: the checkpoint of %d events is not signed with %s", file,
					list[i].Size, strings.Join(keys, " or "))
			}
			kept.files = append(kept.files, file)
		}
		kept.list = append(kept.list, list...)
	}
	return kept, nil
}

// verifyAgainst compares the ledger with the checkpoints that were kept. v has shown whether the stored
// hashes of blocks are those of the events. If they are not, or the last one was not reached, the events are
// compared.
func (p *Verbs) verifyAgainst(ctx context.Context, kept keptCheckpoints, v audit.Verified) (
	a prove.Against, unrecorded int64, err error) {
	if len(kept.list) == 0 {
		return a, 0, nil
	}
	by := prove.ByBlocks
	if v.Stopped || slices.ContainsFunc(v.Findings,
		func(f audit.Finding) bool { return f.Code == audit.FindBlock }) {
		by = prove.ByEvents
	}
	err = p.Read(ctx, func(tx *ledger.Tx) error {
		if a, err = prove.CompareAll(ctx, tx, kept.list, by); err == nil {
			unrecorded, err = a.Unrecorded(ctx, tx)
		}
		return err
	})
	return a, unrecorded, err
}

// findCheckpoint is the code of a finding about a checkpoint that was kept.
const findCheckpoint = "C01"

// againstFindings are the checkpoints of which the ledger is not a continuation.
func againstFindings(a prove.Against, kept keptCheckpoints) (found []audit.Finding) {
	for i, one := range a.Compared {
		if one.Same() {
			continue
		}
		f := audit.Finding{Code: findCheckpoint, Field: kept.files[i], Detail: one.String()}
		if one.Verdict != prove.Foreign && one.Checkpoint.Size >= a.To {
			f.Detail += fmt.Sprintf("; the first difference is among the events %d to %d", a.From, a.To)
		}
		found = append(found, f)
	}
	return found
}

// againstLine says that all checkpoints hold.
func againstLine(a prove.Against) string {
	least, most := a.Compared[0].Checkpoint.Size, int64(0)
	for _, one := range a.Compared {
		least, most = min(least, one.Checkpoint.Size), max(most, one.Checkpoint.Size)
	}
	if len(a.Compared) == 1 {
		return fmt.Sprintf("checkpoint: it holds, of %d events", most)
	}
	return fmt.Sprintf("checkpoints: all %d hold, of %d to %s", len(a.Compared), least,
		words.Count(most, "event"))
}

// againstJSON is a for programs: an object for each checkpoint.
func againstJSON(a prove.Against, kept keptCheckpoints) (list []json.RawMessage) {
	for i, one := range a.Compared {
		object := struct {
			File     string          `json:"file"`
			Origin   string          `json:"origin"`
			Size     int64           `json:"size"`
			Root     string          `json:"root"`
			Verdict  prove.Verdict   `json:"verdict"`
			Ledger   string          `json:"ledger_root"`
			Restored *prove.Restored `json:"restored"`
		}{kept.files[i], one.Checkpoint.Origin, one.Checkpoint.Size, one.Checkpoint.Root.String(), one.Verdict,
			one.Root.String(), one.Restored}
		if text, err := json.Marshal(object); err == nil {
			list = append(list, text)
		}
	}
	return list
}
