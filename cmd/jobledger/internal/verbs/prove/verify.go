package prove

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/logs"
	"jobledger/cmd/jobledger/internal/print"
	"jobledger/cmd/jobledger/internal/prove"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/ledger"
	"jobledger/projection/audit"
)

// Verify proves that the tables say what the events say.
func (p *Verbs) Verify() cli.Verb {
	return cli.Verb{
		Name: "verify", Group: cli.GroupLedger, Usage: "check the whole ledger: its events, and the tables " +
			"against them",
		About: "It folds every event again, from the first, by the same rules as when it was written, and " +
			"compares each row of the tables with what comes out. It also checks the file's structure and guards, " +
			"and the digest of every payload and result. Others may work meanwhile: it reads in steps of half a " +
			"second, up to the event that is then the last.\n" +
			"With --since it checks only the events after that one, the jobs that they concern, and the guards: " +
			"what takes the time of what has come since, where everything before was verified then. A row or a " +
			"payload that was altered and that no event concerns since is found by the whole check only. It says up " +
			"to which event it came; the next one goes on from there.\n" +
			"With --logs it also compares the files with the output of commands with the digests in the events, " +
			"those of the ledger's log folder on this host. A file that differs is a finding; one that is missing " +
			"is counted: you may have removed it, or it is on another host.\n" +
			"With --against it also compares the ledger with checkpoints that were kept elsewhere: the first events " +
			"of the ledger must be those of each. If they differ, it names the events among which the first " +
			"difference is, and the restore that explains it, if one does.\n" +
			"With --proof it checks a file that 'jobledger prove' made, of a job or with --consistency, and needs " +
			"no ledger. It says what is proven, and what is not. --key and --checkpoint say whom to believe: " +
			"without one of them, the writer of the file may have made up all of it.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "logs", Usage: "also check the files that 'logs' shows"},
			&cli.StringFlag{Name: "since", Usage: "only what came after the event `POS`, as a number or pos:N; 0 is " +
				"everything"},
			cli.ListFlag("against", "compare with the checkpoints in `FILE`, one after the other; may be repeated"),
			&cli.StringFlag{Name: "proof", Usage: "check the proof in `FILE`, - for standard input, without a ledger"},
			cli.ListFlag("key",
				"with --proof or --against: a checkpoint must be signed with this `KEY`, a public key or "+
					"a file with one; may be repeated, then with one of them"),
			cli.ListFlag("checkpoint", "with --proof: its checkpoints must be among those in `FILE`; may be repeated"),
		},
		Examples: []cli.Example{
			{"jobledger verify", "exit 0 if everything is right"},
			{"jobledger verify --json", "a summary, then an object for each finding"},
			{"jobledger verify --logs", "also what commands wrote"},
			{"jobledger verify --since 4711", "what came after event 4711, which was verified before"},
			{"jobledger verify --json --since $(cat pos) >verified && jq .until verified >pos",
				"every hour, from where all was right the last time; pos begins as 0"},
			{"jobledger verify --against kept.checkpoints", "also against what was kept on another machine"},
			{"jobledger verify --proof job.proof --key jobs.pub --checkpoint kept.checkpoints",
				"a proof that another person made"},
		},
		Exits: []int{cli.ExitDiscrepancy},
		Run:   p.verify,
	}
}

func (p *Verbs) verify(c *cli.Context) error {
	if err := verifyFlags(c); err != nil {
		return err
	}
	if c.IsSet("proof") {
		return p.verifyProof(c)
	}
	since, err := sinceOf(c.String("since"))
	if err != nil {
		return err
	}
	kept, err := p.readAgainst(c)
	if err != nil {
		return err
	}
	started := time.Now()
	v, err := p.verifySince(c.Context, since)
	var checked *logs.Report
	if c.Bool("logs") && err == nil {
		checked, err = p.verifyLogs(c.Context, v)
		v.Findings = append(v.Findings, checked.Findings...)
	}
	var against prove.Against
	var unrecorded int64
	if err == nil {
		against, unrecorded, err = p.verifyAgainst(c.Context, kept, v)
		v.Findings = append(v.Findings, againstFindings(against, kept)...)
	}
	if unrecorded > 0 {
		p.Message("the ledger has no record of handing out %d of these checkpoints: they were only printed, its "+
			"seals were deleted, or an import left them behind ('jobledger seal import' takes them)", unrecorded)
	}
	more := verifiedMore{checked, against, kept, unrecorded}
	printErr := p.printVerified(v, more, err == nil, c.IsSet("since"), time.Since(started))
	if len(v.Findings) == 0 && errors.Is(err, ledger.ErrDamaged) { // so much that nothing could be checked
		return cli.WithHint(cli.Exitf(cli.ExitDiscrepancy, "%w", err),
			"restore a copy made by 'jobledger backup'")
	}
	if len(v.Findings) == 0 {
		return cmp.Or(err, printErr)
	}
	if err != nil {
		_ = p.MessageAfter("the check could not go on: %v", err) // what was found may be why
	}
	return discrepancy(v)
}

func (p *Verbs) verifySince(ctx context.Context, since int64) (v audit.Verified, err error) {
	service, err := p.Open(ctx)
	if err != nil {
		return v, err
	}
	defer service.Store.Close()
	tail, err := ledger.Read(ctx, service.Store, func(tx *ledger.Tx) (int64, error) { return tx.Tail(ctx) })
	if err != nil {
		return v, err
	}
	bar := p.StartProgress("verifying", max(tail-since, 0))
	defer bar.Done()
	before := int64(0)
	return audit.VerifyStore(ctx, service.Store, since, func(done, _ int64) {
		bar.Add(int(done - before))
		before = done
	})
}

// sinceOf reads a place in the ledger that may be before its beginning.
func sinceOf(text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	pos, err := strconv.ParseInt(strings.TrimPrefix(text, "pos:"), 10, 64)
	if err != nil || pos < 0 {
		return 0, cli.Usagef("--since: %q is not the number of an event, such as 4711 or pos:4711; 0 is everything",
			text)
	}
	return pos, nil
}

// verifyLogs checks the output of the attempts that ended within what was verified.
func (p *Verbs) verifyLogs(ctx context.Context, v audit.Verified) (*logs.Report, error) {
	service, err := p.Open(ctx)
	if err != nil {
		return new(logs.Report), err
	}
	defer service.Store.Close()
	folder, err := logs.Folder(service.Store.Path())
	if err != nil {
		return new(logs.Report), err
	}
	r, err := logs.Check(ctx, service.Store, folder, v.Since, v.Until)
	return &r, err
}

// verifiedMore is what was checked besides the ledger.
type verifiedMore struct {
	logs    *logs.Report // nil: without --logs
	against prove.Against
	kept    keptCheckpoints // none: without --against

	unrecorded int64 // of the kept ones; the ledger has no record of handing them out
}

// lines are about what was checked, for people.
func (m verifiedMore) lines() (lines []string) {
	if m.logs != nil {
		lines = append(lines, print.LogCounts(m.logs.Counts))
	}
	if len(m.against.Compared) > 0 && m.against.AllSame() {
		lines = append(lines, againstLine(m.against))
	}
	return lines
}

func (p *Verbs) printVerified(v audit.Verified, more verifiedMore, complete, since bool,
	took time.Duration) error {
	var counts *logs.Counts
	if more.logs != nil {
		counts = &more.logs.Counts
	}
	if p.JSON {
		err := p.PrintJSON(struct {
			OK       bool    `json:"ok"`
			Complete bool    `json:"complete"` // false: what comes after the last finding was not checked
			Since    int64   `json:"since"`
			Until    int64   `json:"until"`
			Events   int64   `json:"events"`
			Jobs     int64   `json:"jobs"`
			Findings int     `json:"findings"`
			Seconds  float64 `json:"seconds"`

			Logs    *logs.Counts      `json:"logs,omitempty"`    // with --logs
			Against []json.RawMessage `json:"against,omitempty"` // with --against
			// with --against: how many the ledger has no record of handing out
			Unrecorded int64 `json:"unrecorded,omitempty"`
		}{complete && len(v.Findings) == 0, complete &&
			!v.Stopped, v.Since, v.Until, v.Events, v.Jobs, len(v.Findings), took.Seconds(), counts,
			againstJSON(more.against, more.kept), more.unrecorded})
		for _, f := range v.Findings {
			if err == nil {
				err = p.PrintJSON(f)
			}
		}
		return err
	}
	if len(v.Findings) > 0 {
		err := p.PrintTable(print.Findings(v.Findings))
		if err == nil {
			err = p.PrintLines(more.lines())
		}
		return err
	}
	if !complete {
		return nil
	}
	what := fmt.Sprintf("%s of %s checked in %s", words.Count(v.Events, "event"), words.Count(v.Jobs, "job"),
		words.Briefly(took))
	text := fmt.Sprintf("ok: %s; the projection equals the fold of the events", what)
	if since {
		text = fmt.Sprintf("ok: %s, after event %d; go on with --since %d", what, v.Since, v.Until)
	}
	return p.PrintLines(append([]string{text}, more.lines()...))
}

// discrepancy says what was found, and first of all where to look.
func discrepancy(v audit.Verified) error {
	first := v.Findings[0]
	err := cli.Exitf(cli.ExitDiscrepancy, "%s; the first: %s", words.Count(int64(len(v.Findings)), "finding"),
		print.Finding(first))
	if v.Stopped {
		return cli.WithHint(err, "nothing after event %d could be checked; restore a copy made by "+
			"'jobledger backup'", v.Until)
	}
	mendable := func(f audit.Finding) bool {
		return slices.Contains([]string{audit.FindGuard, audit.FindDiffers, audit.FindMissing, audit.FindExtra,
			audit.FindQueue}, f.Code)
	}
	if first.Code == logs.FindUnreadable {
		return cli.WithHint(err, "the ledger itself is right; 'jobledger doctor' says whose the files are, and "+
			"what to do")
	}
	if first.Code == logs.FindLog { // they come last
		return cli.WithHint(err, "the ledger itself is right; see who may write the folder of the logs")
	}
	if first.Code == findCheckpoint {
		return cli.WithHint(err, "what the ledger holds is right in itself, but it is not what was there when the "+
			"checkpoint was made")
	}
	if slices.ContainsFunc(v.Findings, mendable) {
		return cli.WithHint(err, "'jobledger rebuild' derives jobs and queues again from the events, and puts "+
			"guards back")
	}
	return err
}
