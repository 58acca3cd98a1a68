// Package askrow writes rows that ask for jobs, for package inbox and package outbox: the same checks, and
// the same columns.
//
// Held by TestOutboxKeepsEveryField and TestInboxKeepsEveryField.
package askrow

import (
	"context"
	"fmt"
	"strings"

	"github.com/oklog/ulid/v2"

	"jobledger/commands"
	"jobledger/commands/internal/intake"
	"jobledger/commands/internal/usertx"
	"jobledger/ledger/event"
)

const insertRows = 100 // in one statement

// Insert writes a row for each of jobs, a hundred in a statement, and returns their ids in the order of jobs.
// It checks all of them before it writes. The statement is insert, up to its VALUES, the values of id, job
// and payload, and then.
func Insert(ctx context.Context, conn usertx.Conn, insert, then string, jobs []commands.Enqueue) (
	ids []event.JobID, err error) {
	ids, args, err := rows(jobs)
	for len(args) > 0 && err == nil {
		part := args[:min(3*insertRows, len(args))]
		_, err = conn.Exec(ctx, insert+placesOf(len(part)/3)+then, part...)
		args = args[len(part):]
	}
	if err != nil {
		return nil, err
	}
	return ids, nil
}

// rows checks jobs, and returns their ids and the values of their columns.
func rows(jobs []commands.Enqueue) (ids []event.JobID, args []any, err error) {
	for i, job := range jobs {
		id, text, err := row(job)
		if err != nil {
			if len(jobs) > 1 {
				err = fmt.Errorf("job %d of %d: %w", i+1, len(jobs), err)
			}
			return nil, nil, err
		}
		ids, args = append(ids, id), append(args, string(id), text, job.Payload)
	}
	return ids, args, nil
}

// row checks a job and returns its id, and what the column job has of it.
func row(job commands.Enqueue) (id event.JobID, text string, err error) {
	if err := job.Check(); err != nil {
		return "", "", err
	}
	if job.Form != "" { // writers of such a table would run programs as the user of a worker
		return "", "", &commands.InvalidError{Field: "form", Got: job.Form,
			Allowed: "none: such a row takes no commands"}
	}
	if job.ID == "" {
		job.ID = ulid.Make().String()
	}
	parsed, err := ulid.ParseStrict(job.ID)
	if err != nil {
		return "", "", &commands.InvalidError{Field: "id", Got: fmt.Sprintf("%.80q", job.ID), Allowed: "a ULID"}
	}
	if text, err = intake.Encode(intake.Job[commands.Dependency](job)); err != nil {
		return "", "", err
	}
	return event.JobID(parsed.String()), text, nil
}

// placesOf returns ($1,$2,$3),($4,$5,$6)… for n rows.
func placesOf(n int) string {
	var list strings.Builder
	for i := range n {
		fmt.Fprintf(&list, ",($%d,$%d,$%d)", 3*i+1, 3*i+2, 3*i+3)
	}
	return list.String()[1:]
}
