package maintain

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/cli/archived"
	"jobledger/cmd/jobledger/internal/export"
	"jobledger/cmd/jobledger/internal/files"
	"jobledger/cmd/jobledger/internal/print"
	"jobledger/cmd/jobledger/internal/when"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/commands"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/follow"
)

// Replay copies the ledger as it was at an earlier moment.
func (p *Verbs) Replay() cli.Verb {
	return archived.With(p.Program, cli.Verb{
		Name: "replay", Group: cli.GroupLedger, Usage: "make a copy of the ledger as it was at some moment",
		About: "The copy holds the events up to that moment and the jobs they add up to; every command works on " +
			"it. The ledger itself is only read, and no code of yours is run. A time stands for the last event that " +
			"is not after it. Payloads that were erased since are missing in the copy too, and their queues are " +
			"paused. The last event of the copy, imported, says of which moment it is. Until something else is " +
			"written to it, 'status', 'why', 'workers', 'queues' and all other questions about now are answered as " +
			"of that moment, without those pauses; '--as-of now' asks by today's clock.\n" +
			"The copy appears under its name when it is whole. --dry-run prints the counts and makes no copy.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "as-of", Usage: "up to `TIME`, or pos:N", Required: true},
			&cli.StringFlag{Name: "into", Usage: "the copy: a `FILE` that does not exist"},
			&cli.BoolFlag{Name: "dry-run", Usage: "only count the jobs by queue and state", DisableDefaultText: true},
		},
		Examples: []cli.Example{
			{"jobledger replay --as-of 03:00 --into at-three.db && jobledger list --db at-three.db --state running",
				"which jobs were running"},
			{"jobledger replay --as-of pos:4711 --dry-run", "how many jobs were in which state"},
		},
		Renamed: map[string]string{"until": "as-of"},
		Exits:   []int{cli.ExitConflict, cli.ExitDiscrepancy, cli.ExitBusy},
		Run:     p.replay,
	})
}

func (p *Verbs) replay(c *cli.Context) error {
	ctx, stop := signal.NotifyContext(c.Context, os.Interrupt, syscall.SIGTERM) // to remove the temporary file
	defer stop()
	into := c.String("into")
	switch {
	case into == "" && !c.Bool("dry-run"):
		return cli.WithHint(cli.Usagef("missing flag --into"), "--dry-run makes no copy and needs none")
	case into == "" && c.IsSet("into"):
		return cli.Usagef("--into is empty")
	}
	if err := cli.CheckNewFile("--into", into); err != nil {
		return err
	}
	w, _, err := p.WhenFlag(c, "as-of")
	if err != nil {
		return err
	}
	service, err := p.Open(ctx)
	if err != nil {
		return err
	}
	defer service.Store.Close()
	var to replayPoint
	err = service.Store.Read(ctx, func(tx *ledger.Tx) (err error) {
		if to, err = pointOf(ctx, tx, w, p.Now()); err == nil {
			err = projection.AfterHorizon(ctx, tx, 0) // every event is copied
		}
		return err
	})
	if err != nil {
		return err
	}
	if c.Bool("dry-run") {
		tally := follow.Tally{}
		all := export.Window{Until: to.until}
		err := export.EachEvent(ctx, service.Store, all, nil, func(e event.Event, queue string) error {
			tally.Add(e, queue)
			return nil
		})
		if err != nil {
			return err
		}
		return p.printReplayed("", to, tally)
	}
	return p.replayInto(ctx, service, into, to)
}

// replayPoint is where a replay ends.
type replayPoint struct {
	until int64     // the pos of the last event
	at    time.Time // of that event
	asOf  time.Time // the moment that was named, as far as it is known
}

func pointOf(ctx context.Context, tx *ledger.Tx, w when.When, now time.Time) (to replayPoint, err error) {
	tail, err := tx.Tail(ctx)
	if err == nil && w.ByPos && w.Pos > tail {
		return to, cli.Usagef("--as-of: there is no event %d yet; the last one is %d", w.Pos, tail)
	}
	if err == nil {
		to.until, err = w.Position(ctx, tx, false)
	}
	if err == nil {
		to.at, err = export.TimeAt(ctx, tx, to.until)
	}
	switch {
	case err != nil:
		return to, err
	case w.ByPos:
		m, err := projection.AtPos(ctx, tx, w.Pos)
		if err != nil {
			return to, err
		}
		to.asOf = m.At
	case now.Before(w.Time): // nothing is known of later
		to.asOf = now
	default:
		to.asOf = w.Time
	}
	if to.asOf.Before(to.at) {
		to.asOf = to.at
	}
	return to, nil
}

func (p *Verbs) replayInto(
	ctx context.Context, service *commands.Service, path string, to replayPoint,
) error {
	bar := p.StartProgress("replay", to.until)
	done, err := files.Replay(ctx, service.Store,
		files.ReplayOptions{Into: path, Until: to.until, At: to.asOf, Actor: p.Actor, Progress: bar.To()})
	bar.Done()
	if errors.Is(err, files.ErrBadSource) {
		return cli.WithHint(cli.Exitf(cli.ExitDiscrepancy, "%w", err), "see 'jobledger verify'")
	}
	if err != nil {
		return stagingError(err, path)
	}
	if done.Missing > 0 {
		why := "erased since"
		if service.Store.Of != nil {
			why = "erased since, or left the ledger with their jobs,"
		}
		p.Message("%d %s %s %s missing in the copy", done.Missing,
			words.Plural(done.Missing, "payload or result that was", "payloads and results that were"), why,
			words.Plural(done.Missing, "is", "are"))
	}
	if err := p.printReplayed(path, to, done.Tally); err != nil || len(done.Findings) == 0 {
		return err
	}
	f := done.Findings[0]
	err = cli.Exitf(cli.ExitDiscrepancy,
		"the copy is whole, but the ledger is wrong: %s event %d: %s", f.Code, f.Pos, f.Detail)
	return cli.WithHint(err, "see 'jobledger verify'")
}

// printReplayed prints how many jobs are in which state.
func (p *Verbs) printReplayed(path string, to replayPoint, tally follow.Tally) error {
	jobs := print.TallyJobs(tally)
	if p.JSON {
		return p.PrintJSON(struct {
			Copy   *string                     `json:"copy"`
			Until  int64                       `json:"until"`
			At     *string                     `json:"at"`
			Jobs   int64                       `json:"jobs"`
			Queues map[string]map[string]int64 `json:"queues"`
		}{words.TextOrNull(path), to.until, words.TimeOrNull(to.at), jobs, print.TallyJSON(tally)})
	}
	text := "no event"
	if to.until > 0 {
		text = fmt.Sprintf("%s up to %s, of %s",
			words.Count(to.until, "event"), words.Time(p.Local(to.at)), words.Count(jobs, "job"))
	}
	if path != "" {
		text = path + ": " + text
	}
	if err := p.PrintLine(text); err != nil || jobs == 0 {
		return err
	}
	return p.PrintTable(print.Tally(tally))
}
