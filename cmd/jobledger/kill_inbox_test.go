//go:build unix

package main

import (
	"context"
	"strings"
	"testing"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/commands"
	"jobledger/commands/inbox"
)

// A sweep that is killed while it takes in rows of the inbox loses none, and takes in none twice.
func TestKilledWhileTakingIn(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var ids []string
	i := r.fill(func(p serviceRig) invocation {
		ctx := context.Background()
		p.job("so that the ledger has an event")
		db, err := inbox.Open(ctx, p.Store)
		if err != nil {
			p.Fatal(err)
		}
		defer db.Close()
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			p.Fatal(err)
		}
		for range 3 {
			id, err := inbox.Enqueue(ctx, tx, commands.Enqueue{Queue: "mail", Payload: []byte("x")})
			if err != nil {
				p.Fatal(err)
			}
			ids = append(ids, string(id))
		}
		if err := tx.Commit(); err != nil {
			p.Fatal(err)
		}
		return invoke("sweep")
	})
	for _, step := range []string{"inbox-enqueued", "inbox-moved"} {
		r.dieAtEach(step, i, cli.ExitOK, func(r rig, _ exit) {
			r.must(cli.ExitOK, i)
			seen := r.must(cli.ExitOK, invoke("list", "--json"))
			for _, id := range ids {
				if n := strings.Count(seen, `"id":"`+id); n != 1 {
					r.Errorf("job %s is there %d times", id, n)
				}
			}
			if _, findings := r.inspect(db); len(findings) > 0 {
				r.Errorf("verify: %+v", findings)
			}
		})
	}
}
