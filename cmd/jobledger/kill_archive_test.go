//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"time"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/commands"
	"jobledger/commands/archive"
	"jobledger/ledger"
	"jobledger/ledger/ledgertest"
)

// An archive that is killed at random moments, again and again while jobs come, loses no event, and every
// question about a moment is answered as before. TestKilledWhileRemoving kills it at each of its steps.
func TestKilledArchiveAtRandom(t *testing.T) {
	for name, dsn := range map[string]func(*testing.T, site) string{
		"sqlite":   func(_ *testing.T, s site) string { return s.path(db) },
		"postgres": func(t *testing.T, _ site) string { return ledgertest.Postgres(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			where := dsn(t, s)
			s.env = append(s.env, "JOBLEDGER_DB="+where, "JOBLEDGER_ARCHIVE="+s.path("old"))
			store, err := ledger.Open(t.Context(), where)
			if err != nil {
				t.Fatal(err)
			}
			defer store.Close()
			r := archiveKills{site: s, service: &commands.Service{Store: store}, dir: s.path("old"),
				dice: rand.New(rand.NewPCG(*killSeed, 7))}
			kills := ledgertest.Size(1, 1, 60)
			if name == "postgres" {
				kills = ledgertest.Size(1, 1, 20)
			}
			r.run(kills)
		})
	}
}

// archiveKills is a site whose archive is killed.
type archiveKills struct {
	site
	service *commands.Service
	dir     string
	dice    *rand.Rand
	jobs    int
	leaves  [][]byte      // of every event so far
	takes   time.Duration // an archive that is not killed
}

// countsOfNow is what an answer about a moment says besides.
var countsOfNow = regexp.MustCompile(`"now":{[^}]*}`)

// run kills so many archives that had not ended.
func (r *archiveKills) run(most int) {
	r.Helper()
	r.fill(200)
	questions := [][]string{{"list", "--json", "--limit", "1000"}, {"status", "--json"}, {"queues", "--json"}}
	var answers []string
	for i := range questions {
		questions[i] = append(questions[i], "--as-of", "pos:250") // the first file has 256 events
		answers = append(answers, countsOfNow.ReplaceAllString(r.site.run(questions[i]...), ""))
	}
	ask := func() {
		r.Helper()
		for i, words := range questions {
			got := countsOfNow.ReplaceAllString(r.site.run(words...), "")
			if got != answers[i] {
				r.Errorf("%s is answered by %d bytes, and was by %d", strings.Join(words, " "), len(got),
					len(answers[i]))
			}
		}
	}
	kills, ended := 0, 0
	for kills < most && ended < 50+most && !r.Failed() {
		r.fill(40)
		cmd := r.command("archive", "--older-than", "0s")
		var said bytes.Buffer
		cmd.Stderr = &said
		began := time.Now()
		if err := cmd.Start(); err != nil {
			r.Fatal(err)
		}
		if r.takes > 0 {
			after := time.Duration(r.dice.Int64N(int64(r.takes)))
			time.AfterFunc(after, func() { _ = cmd.Process.Kill() })
		}
		_ = cmd.Wait()
		switch code := cmd.ProcessState.ExitCode(); code {
		case -1:
			kills++
		case cli.ExitOK, cli.ExitNothing:
			ended++
			r.takes = time.Since(began)
		default:
			r.Errorf("archive: exit code %d: %s", code, said.String())
		}
		if (kills+ended)%4 == 1 { // what is lost stays lost
			r.check()
		}
		if (kills+ended)%20 == 1 {
			r.checkFiles()
			ask()
		}
	}
	if kills < most {
		r.Errorf("%d archives were killed, and %d ended before", kills, ended)
	}
	r.fill(128) // a whole block: the last archive may have been killed after it had archived all
	r.site.run("archive", "--older-than", "0s")
	r.check()
	r.checkFiles()
	ask()
	if got := r.outcome("enqueue", "-q", "mail", "--key", "key 7", "other"); got != cli.ExitConflict {
		r.Errorf("another job with a key of one that left: exit code %d", got)
	}
	var left int64
	err := r.service.Store.Read(r.Context(), func(tx *ledger.Tx) error {
		rows, err := tx.Query(r.Context(), `SELECT count(*) FROM jobs WHERE finished_at IS NOT NULL`)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			err = rows.Scan(&left)
		}
		return err
	})
	if err != nil || left > 200 { // of the last events, which are not a whole block
		r.Errorf("%d jobs that have ended are in the ledger, %v", left, err)
	}
	r.Logf("%d kills, %d archives ended before; %d jobs, %d events, %d jobs left", kills, ended, r.jobs,
		len(r.leaves), left)
}

// fill enqueues and cancels so many jobs, and takes in the events.
func (r *archiveKills) fill(n int) {
	r.Helper()
	jobs := make([]commands.Enqueue, n)
	for i := range jobs {
		jobs[i] = commands.Enqueue{Queue: "mail", Key: fmt.Sprint("key ", r.jobs), Payload: []byte("x")}
		r.jobs++
	}
	done, err := r.service.Enqueue(r.Context(), "cli:test", jobs...)
	if err != nil {
		r.Fatal(err)
	}
	ops := make([]commands.Op, n)
	for i, j := range done {
		ops[i] = commands.Op{Job: j.Job, Command: commands.Cancel{}}
	}
	results, err := r.service.ApplyBatch(r.Context(), "cli:test", ops)
	for _, a := range results {
		err = errors.Join(err, a.Err)
	}
	if err != nil {
		r.Fatal(err)
	}
	r.read(len(r.leaves), func(leaf []byte) { r.leaves = append(r.leaves, bytes.Clone(leaf)) })
}

// read calls fn with the leaves of all events after one, from the archive and the ledger.
func (r *archiveKills) read(after int, fn func([]byte)) {
	r.Helper()
	var leaf []byte
	f := ledger.Filter{After: int64(after)}
	for line, err := range archive.Lines(context.Background(), r.service.Store, r.dir, f) {
		if err != nil {
			r.Fatal(err)
		}
		leaf = line.Event.AppendLeaf(leaf[:0])
		fn(leaf)
	}
}

// check compares all events with those that there were.
func (r *archiveKills) check() {
	r.Helper()
	n := 0
	r.read(0, func(leaf []byte) {
		if n < len(r.leaves) && !bytes.Equal(leaf, r.leaves[n]) {
			r.Errorf("event %d is %s, and was %s", n+1, leaf, r.leaves[n])
		}
		n++
	})
	if n < len(r.leaves) {
		r.Errorf("there are %d events, and were %d", n, len(r.leaves))
	}
	r.site.run("verify")
}

// checkFiles checks the archive.
func (r *archiveKills) checkFiles() {
	r.Helper()
	if code := r.outcome("archive", "check"); code != cli.ExitOK && code != cli.ExitNothing {
		r.Errorf("archive check: exit code %d", code)
	}
}

func (r *archiveKills) outcome(words ...string) int {
	cmd := r.command(words...)
	_ = cmd.Run()
	return cmd.ProcessState.ExitCode()
}
