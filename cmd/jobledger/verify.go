package main

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"jobledger/ledger"
	"jobledger/projection"
)

// verifyVerb proves that the tables say what the events say.
func verifyVerb(p *program) verb {
	return verb{
		name: "verify", group: groupLedger, usage: "check the whole ledger: its events, and the tables against them",
		about: "It folds every event again, from the first, by the same rules as when it was written, and compares each " +
			"row of the tables with what comes out. It also checks the file's structure and guards, and the digest " +
			"of every payload and result. Others may work meanwhile; it sees one snapshot.",
		examples: []example{
			{"jobledger verify", "exit 0 if everything is right"},
			{"jobledger verify --json", "a summary, then an object for each finding"},
		},
		exits: []int{exitDiscrepancy},
		run: func(c *cli.Context) error {
			started := time.Now()
			var v projection.Verified
			err := p.read(c.Context, func(tx *ledger.Tx) error {
				total, err := tx.Tail(c.Context)
				if err != nil {
					return err
				}
				bar := p.startProgress("verifying", total)
				defer bar.done()
				before := int64(0)
				v, err = projection.Verify(c.Context, tx, func(done, _ int64) {
					bar.add(int(done - before))
					before = done
				})
				return err
			})
			printErr := p.printVerified(v, err == nil, time.Since(started))
			if len(v.Findings) == 0 {
				return cmp.Or(err, printErr)
			}
			if err != nil {
				_ = p.more("the check could not go on: %v", err) // what was found may be why
			}
			return discrepancy(v)
		},
	}
}

func (p *program) printVerified(v projection.Verified, complete bool, took time.Duration) error {
	if p.json {
		err := p.printJSON(struct {
			OK       bool    `json:"ok"`
			Complete bool    `json:"complete"` // false: what comes after the last finding was not checked
			Events   int64   `json:"events"`
			Jobs     int64   `json:"jobs"`
			Findings int     `json:"findings"`
			Seconds  float64 `json:"seconds"`
		}{complete && len(v.Findings) == 0, complete && !v.Stopped, v.Events, v.Jobs, len(v.Findings), took.Seconds()})
		for _, f := range v.Findings {
			if err == nil {
				err = p.printJSON(f)
			}
		}
		return err
	}
	if len(v.Findings) > 0 {
		t := &table{columns: []column{{title: "CODE"}, {title: "POS", right: true}, {title: "JOB"}, {title: "FIELD"}, {title: "FINDING"}}}
		for _, f := range v.Findings {
			pos := ""
			if f.Pos > 0 {
				pos = fmt.Sprint(f.Pos)
			}
			t.add(f.Code, pos, string(f.Job), f.Field, f.Detail)
		}
		return p.printTable(t)
	}
	if !complete {
		return nil
	}
	return p.printLine(fmt.Sprintf("ok: %s of %s checked in %s; the projection equals the fold of the events",
		count(v.Events, "event"), count(v.Jobs, "job"), briefly(took)))
}

// discrepancy says what was found, and first of all where to look.
func discrepancy(v projection.Verified) error {
	first := v.Findings[0]
	where := ""
	if first.Pos > 0 {
		where += fmt.Sprintf(" event %d", first.Pos)
	}
	if first.Job != "" {
		where += " job " + string(first.Job)
	}
	if first.Field != "" {
		where += " field " + first.Field
	}
	err := exitf(exitDiscrepancy, "%s; the first: %s%s: %s", count(int64(len(v.Findings)), "finding"), first.Code, where, first.Detail)
	if v.Stopped {
		return withHint(err, "nothing behind event %d could be checked; a copy that 'jobledger backup' made is the way back", v.Events)
	}
	mendable := func(f projection.Finding) bool {
		return slices.Contains([]string{projection.FindGuard, projection.FindDiffers, projection.FindMissing, projection.FindExtra, projection.FindQueue}, f.Code)
	}
	if slices.ContainsFunc(v.Findings, mendable) {
		return withHint(err, "'jobledger rebuild' derives jobs and queues anew from the events, and puts guards back")
	}
	return err
}
