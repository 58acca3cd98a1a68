package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/layout"
	"jobledger/cmd/jobledger/internal/logcheck"
	"jobledger/cmd/jobledger/internal/render"
	"jobledger/ledger"
	"jobledger/projection/audit"
)

// verifyVerb proves that the tables say what the events say.
func verifyVerb(p *program) cli.Verb {
	return cli.Verb{
		Name: "verify", Group: cli.GroupLedger, Usage: "check the whole ledger: its events, and the tables " +
			"against them",
		About: "It folds every event again, from the first, by the same rules as when it was written, and " +
			"compares each row of the tables with what comes out. It also checks the file's structure and guards, " +
			"and the digest of every payload and result. Others may work meanwhile: it reads in steps of half a " +
			"second, up to the event that is then the last.\n" +
			"With --since it checks only the events after that one, the jobs that they concern, and the guards: " +
			"what takes the time of what has come since, where everything before was verified then. A row or a " +
			"payload that was altered and that no event concerns since is found by the whole check only. It says " +
			"up to which event it came; the next one goes on from there.\n" +
			"With --logs it also compares the files with the output of commands with the digests in the events, " +
			"those of the ledger's log folder on this host. A file that differs is a finding; one that is missing " +
			"is counted: you may have removed it, or it is on another host.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "logs", Usage: "also check the files that 'logs' shows"},
			&cli.StringFlag{Name: "since", Usage: "only what came after the event `POS`, as a number or pos:N; 0 is " +
				"everything"},
		},
		Examples: []cli.Example{
			{"jobledger verify", "exit 0 if everything is right"},
			{"jobledger verify --json", "a summary, then an object for each finding"},
			{"jobledger verify --logs", "also what commands wrote"},
			{"jobledger verify --since 4711", "what came after event 4711, which was verified before"},
			{"jobledger verify --json --since $(cat pos) >verified && jq .until verified >pos",
				"every hour, from where all was right the last time; pos begins as 0"},
		},
		Exits: []int{cli.ExitDiscrepancy},
		Run:   p.verify,
	}
}

func (p *program) verify(c *cli.Context) error {
	since, err := sinceOf(c.String("since"))
	if err != nil {
		return err
	}
	defer cli.TuneGC()()
	started := time.Now()
	v, err := p.verifySince(c.Context, since)
	var logs *logcheck.Report
	if c.Bool("logs") && err == nil {
		logs, err = p.verifyLogs(c.Context, v)
		v.Findings = append(v.Findings, logs.Findings...)
	}
	printErr := p.printVerified(v, logs, err == nil, c.IsSet("since"), time.Since(started))
	if len(v.Findings) == 0 && errors.Is(err, ledger.ErrDamaged) { // so much that nothing could be checked
		return cli.WithHint(cli.Exitf(cli.ExitDiscrepancy, "%w", err),
			"a copy that 'jobledger backup' made is the way back")
	}
	if len(v.Findings) == 0 {
		return cmp.Or(err, printErr)
	}
	if err != nil {
		_ = p.MessageAfter("the check could not go on: %v", err) // what was found may be why
	}
	return discrepancy(v)
}

func (p *program) verifySince(ctx context.Context, since int64) (v audit.Verified, err error) {
	service, err := p.Open(ctx)
	if err != nil {
		return v, err
	}
	defer service.Store.Close()
	tail := int64(0)
	err = service.Store.Read(ctx, func(tx *ledger.Tx) error {
		tail, err = tx.Tail(ctx)
		return err
	})
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
func (p *program) verifyLogs(ctx context.Context, v audit.Verified) (*logcheck.Report, error) {
	service, err := p.Open(ctx)
	if err != nil {
		return new(logcheck.Report), err
	}
	defer service.Store.Close()
	folder, err := cli.LogFolder(service.Store.Path())
	if err != nil {
		return new(logcheck.Report), err
	}
	r, err := logcheck.Check(ctx, service.Store, folder, v.Since, v.Until)
	return &r, err
}

func (p *program) printVerified(v audit.Verified, logs *logcheck.Report, complete, since bool,
	took time.Duration) error {
	var counts *logcheck.Counts
	if logs != nil {
		counts = &logs.Counts
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

			Logs *logcheck.Counts `json:"logs,omitempty"` // with --logs
		}{complete && len(v.Findings) == 0, complete &&
			!v.Stopped, v.Since, v.Until, v.Events, v.Jobs, len(v.Findings), took.Seconds(), counts})
		for _, f := range v.Findings {
			if err == nil {
				err = p.PrintJSON(f)
			}
		}
		return err
	}
	if len(v.Findings) > 0 {
		err := p.PrintTable(layout.Findings(v.Findings))
		if err == nil && logs != nil {
			err = p.PrintLine(layout.LogCounts(logs.Counts))
		}
		return err
	}
	if !complete {
		return nil
	}
	what := fmt.Sprintf("%s of %s checked in %s", render.Count(v.Events, "event"), render.Count(v.Jobs, "job"),
		render.Briefly(took))
	text := fmt.Sprintf("ok: %s; the projection equals the fold of the events", what)
	if since {
		text = fmt.Sprintf("ok: %s, after event %d; go on with --since %d", what, v.Since, v.Until)
	}
	if err := p.PrintLine(text); err != nil || logs == nil {
		return err
	}
	return p.PrintLine(layout.LogCounts(logs.Counts))
}

// discrepancy says what was found, and first of all where to look.
func discrepancy(v audit.Verified) error {
	first := v.Findings[0]
	err := cli.Exitf(cli.ExitDiscrepancy, "%s; the first: %s", render.Count(int64(len(v.Findings)), "finding"),
		layout.Finding(first))
	if v.Stopped {
		return cli.WithHint(err, "nothing behind event %d could be checked; a copy that 'jobledger backup' made "+
			"is the way back", v.Until)
	}
	mendable := func(f audit.Finding) bool {
		return slices.Contains([]string{audit.FindGuard, audit.FindDiffers, audit.FindMissing, audit.FindExtra,
			audit.FindQueue}, f.Code)
	}
	if first.Code == logcheck.FindLog { // they come last
		return cli.WithHint(err, "the ledger itself is right; see who may write the folder of the logs")
	}
	if slices.ContainsFunc(v.Findings, mendable) {
		return cli.WithHint(err, "'jobledger rebuild' derives jobs and queues again from the events, and puts "+
			"guards back")
	}
	return err
}
