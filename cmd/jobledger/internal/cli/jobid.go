package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/oklog/ulid/v2"

	"jobledger/commands"
	"jobledger/ledger"
	"jobledger/projection"
)

// FindJob returns the job with the id text, or with the only id that begins with text, or that ends with what
// follows "…" or "..." in text: the ids of one batch differ only at their ends.
func FindJob(ctx context.Context, tx *ledger.Tx, text string) (projection.Job, error) {
	for _, dots := range []string{"…", "..."} {
		if suffix, ok := strings.CutPrefix(text, dots); ok {
			return findJobBySuffix(ctx, tx, text, strings.ToUpper(suffix))
		}
	}
	prefix := strings.ToUpper(text)
	found, err := projection.Find(ctx, tx, prefix, 3)
	switch {
	case err != nil:
		return projection.Job{}, err
	case len(prefix) > ulid.EncodedSize || strings.Trim(prefix, ulid.Encoding) != "" || prefix == "":
		return projection.Job{}, Usagef("%q is no job id; an id is 26 characters, or the beginning of one", text)
	case len(found) == 0:
		return projection.Job{}, fmt.Errorf("%w: %s", commands.ErrNoJob, text)
	case len(found) > 1:
		return projection.Job{}, Usagef("%q is the beginning of several ids, among them %s and %s; give more of it",
			text, found[0].ID, found[1].ID)
	}
	return found[0], nil
}

func findJobBySuffix(ctx context.Context, tx *ledger.Tx, text, suffix string) (projection.Job, error) {
	if len(suffix) > ulid.EncodedSize || strings.Trim(suffix, ulid.Encoding) != "" || len(suffix) < 4 {
		return projection.Job{}, Usagef("%q is no end of a job id; give at least its last 4 characters", text)
	}
	found, err := projection.FindBySuffix(ctx, tx, suffix, 4)
	switch {
	case err != nil:
		return projection.Job{}, err
	case len(found) == 0:
		return projection.Job{}, fmt.Errorf("%w: %s", commands.ErrNoJob, text)
	case len(found) > 1:
		var ids []string
		for _, j := range found {
			ids = append(ids, string(j.ID))
		}
		return projection.Job{}, Usagef("%q is the end of several ids, among them %s; give more of it", text,
			strings.Join(ids, ", "))
	}
	return found[0], nil
}

// FindJob is the function [FindJob] on a snapshot of its own.
func (p *Program) FindJob(ctx context.Context, service *commands.Service, text string) (j projection.Job,
	err error) {
	err = service.Store.Read(ctx, func(tx *ledger.Tx) (err error) {
		j, err = FindJob(ctx, tx, text)
		return err
	})
	return j, err
}
