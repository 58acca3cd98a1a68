package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// goalDrain is a goal of drains on PostgreSQL, divided by River's.
type goalDrain struct {
	procs, workers int
	places         []place
	where, goal    string
}

var goalDrains = func() []goalDrain {
	delays := []place{{}, {delay: 500 * time.Microsecond}, {delay: 2 * time.Millisecond}}
	const text = "a round trip takes 0 / 0.5 / 2 ms more"
	return []goalDrain{
		{4, 16, delays, text, "≥ 1.3 / 1.2 / 1.1"},
		{8, 8, delays, text, "≥ 1.0 / 1.0 / 1.0"},
		{1, 8, delays, text, "≥ 1.2 / 1.2 / 1.2"},
		{1, 64, delays, text, "≥ 1.2 / 1.2 / 1.2"},
		{4, 64, delays, text, "≥ 1.2 / 1.2 / 1.2"},
		{4, 16, []place{{sync: time.Millisecond}}, "a sync takes 1 ms more", "≥ 1.3"},
	}
}()

func (d goalDrain) key(p place) string { return fmt.Sprint(d.procs, d.workers, p) }

// bytesDrain is the drain after which bytes are measured: by turns of up to eight jobs.
var bytesDrain = goalDrains[2]

// fleetPlace is the network of the fleet.
var fleetPlace = place{delay: 2 * time.Millisecond}

const busySlots = 16 // of the process whose connections are counted

// onPostgres is a round.
func (g *goals) onPostgres(ctx context.Context, n int) error {
	for i := range goalDrains {
		d := goalDrains[(i+n*len(goalDrains)/g.rounds)%len(goalDrains)]
		for _, p := range d.places {
			c := Cell{Phase: "drain", Procs: d.procs, Workers: d.workers, Jobs: 8 * g.jobs}
			if c.Procs > 1 {
				c.Phase = "procs"
			}
			if c.Procs*c.Workers < 64 { // which take longer anyway
				c.Jobs = 4 * g.jobs
			}
			ours, rivers := drainBoth(ctx, c, g.options, p, n, g.stderr)
			if ctx.Err() != nil {
				return errInterrupted
			}
			if ours.whole() && rivers.whole() {
				g.keep(d.key(p), ours.JobsPerS/rivers.JobsPerS)
				g.keep("jobs/s "+d.key(p), ours.JobsPerS)
			}
			if ours.whole() && d.key(p) == bytesDrain.key(place{}) {
				g.keep("server's bytes", ours.BytesPerJob)
			}
		}
	}
	for _, step := range []struct {
		name    string
		measure func() error
	}{
		{"fleet", func() error {
			possible, err := fleetOf(ctx, g.options, fleetPlace, false)
			if err != nil {
				return err
			}
			reached, err := fleetOf(ctx, g.options, fleetPlace, true)
			if err == nil {
				g.keep("possible", possible)
				g.keep("fleet", fleetWorkers/fleetJob.Seconds()/possible)
				g.keep("real fleet", reached)
			}
			return err
		}},
		{"connections", func() error {
			return inPlace(ctx, g.options, place{}, func(f File) error {
				idle, busy, err := connectionsOf(ctx, f, 4*g.jobs)
				if err == nil {
					g.keep("idle", float64(idle))
					g.keep("busy", float64(busy))
				}
				return err
			})
		}},
	} {
		began := time.Now()
		err := step.measure()
		if ctx.Err() != nil {
			return errInterrupted
		}
		failure := ""
		if err != nil {
			failure = err.Error()
		}
		fmt.Fprintf(g.stderr, "round %d  %-14s %6.2f s  %s\n", n+1, step.name, time.Since(began).Seconds(), failure)
	}
	return nil
}

// connectionsOf counts the connections of one process that works: at most while it drains jobs, and once it has
// been idle for long enough to close those that it does not need.
func connectionsOf(ctx context.Context, f File, jobs int) (idle, busy int, err error) {
	e, _ := engineNamed("jobledger-pg")
	q, w, err := openWatched(ctx, Cell{Engine: e}, f)
	if err != nil {
		return 0, 0, err
	}
	defer w.Close()
	_, err = fill(ctx, q, jobs)
	if err := errors.Join(err, q.Close()); err != nil {
		return 0, 0, fmt.Errorf("fill: %w", err)
	}
	f.New = false
	p, err := startChild(ctx, childTask{Engine: e.Name, File: f, Workers: busySlots, Jobs: jobs})
	if p != nil {
		defer func() {
			_, endErr := p.end()
			err = errors.Join(err, endErr)
		}()
	}
	if err == nil {
		err = p.begin()
	}
	const others = `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
		AND pid <> pg_backend_pid() AND backend_type = 'client backend'`
	for left := jobs; left > 0 && err == nil; time.Sleep(askEvery) {
		var n int
		if err = w.db.QueryRowContext(ctx, others).Scan(&n); err == nil {
			busy = max(busy, n)
			left, err = w.Left(ctx)
		}
	}
	const enough = 2
	for end := time.Now().Add(15 * time.Second); err == nil; time.Sleep(100 * time.Millisecond) {
		err = w.db.QueryRowContext(ctx, others).Scan(&idle)
		if idle <= enough || time.Now().After(end) {
			break
		}
	}
	return idle, busy, err
}

func (g *goals) printPostgres(out *printer) {
	for _, d := range goalDrains {
		var ratios, rates []string
		for _, p := range d.places {
			ratios = append(ratios, g.at(d.key(p), "%.2f"))
			rates = append(rates, g.at("jobs/s "+d.key(p), "%.0f"))
		}
		out.f("| PostgreSQL: drain ÷ River's, %d × %d, %s (jobs/s) | %s | %s (%s) | |\n", d.procs, d.workers, d.where,
			d.goal, strings.Join(ratios, " / "), strings.Join(rates, " / "))
	}
	out.f("| 1,000 workers with one slot, commands of 10 s, %s a round trip: commits needed ÷ possible (jobs/s of 100 "+
		"workers, commands of 1 s) | ≤ 0.5 | %s (%s of %s possible) | |\n", fleetPlace, g.at("fleet", "%.2f"),
		g.at("real fleet", "%.1f"), g.at("possible", "%.0f"))
	out.f("| bytes a finished job, as it stands | ≤ 1,000 | %s | |\n", g.at("server's bytes", "%.0f"))
	out.f("| connections of an idle and of a busy worker | ≤ 2 / 4 | %s / %s | |\n", g.at("idle", "%.0f"),
		g.at("busy", "%.0f"))
}
