package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// The comparison with River over a network: -network. Each cell is drained by both engines, one right after
// the other, through a proxy that delays, on a server whose disk may be made slower.

// place is a network, and the disk of the server.
type place struct {
	delay time.Duration // added to a round trip
	sync  time.Duration // added to a sync of the write-ahead log
}

func (p place) String() string {
	text := fmt.Sprintf("%g ms", float64(p.delay)/float64(time.Millisecond))
	if p.sync > 0 {
		text += fmt.Sprintf(", a sync takes %g ms more", float64(p.sync)/float64(time.Millisecond))
	}
	return text
}

// networkShapes are the processes and the workers of each.
var networkShapes = [][2]int{{1, 8}, {1, 64}, {4, 16}, {8, 8}, {4, 64}}

// networkCells returns the shapes that only names: all where it is "".
func networkCells(o options) (cells []Cell, err error) {
	for _, shape := range networkShapes {
		name := fmt.Sprintf("%dx%d", shape[0], shape[1])
		if o.shapes != "" && !strings.Contains(","+o.shapes+",", ","+name+",") {
			continue
		}
		c := Cell{Phase: "drain", Procs: shape[0], Workers: shape[1], Jobs: 4 * o.jobs}
		if c.Procs > 1 {
			c.Phase = "procs"
		}
		cells = append(cells, c)
	}
	if len(cells) == 0 {
		return nil, fmt.Errorf("-shapes %s: some of 1x8, 1x64, 4x16, 8x8 and 4x64", o.shapes)
	}
	return cells, nil
}

// places reads the flags -delays and -syncs.
func places(o options) (found []place, err error) {
	read := func(flag, list string) (each []time.Duration) {
		for text := range strings.SplitSeq(list, ",") {
			ms, parseErr := strconv.ParseFloat(text, 64)
			if parseErr != nil || ms < 0 || ms > 100 {
				err = fmt.Errorf("%s %s: milliseconds from 0 to 100, separated by commas", flag, list)
			}
			each = append(each, time.Duration(ms*float64(time.Millisecond)))
		}
		return each
	}
	syncs, delays := read("-syncs", o.syncs), read("-delays", o.delays)
	for _, sync := range syncs {
		for _, delay := range delays {
			found = append(found, place{delay, sync})
		}
	}
	return found, err
}

// compareOverNetwork prints how fast jobledger drains, compared with River, for each shape and place.
func compareOverNetwork(ctx context.Context, o options, stdout, stderr io.Writer) error {
	if o.postgres == "" {
		return errors.New("-network needs a server: -postgres URL, of a superuser")
	}
	cells, err := networkCells(o)
	if err != nil {
		return err
	}
	all, err := places(o)
	if err != nil {
		return err
	}
	ratios, rates := make(map[string][]float64), make(map[string][]float64)
	for round := range o.rounds {
		for _, p := range all {
			for _, c := range cells {
				ours, rivers := drainBoth(ctx, c, o, p, round, stderr)
				if ctx.Err() != nil {
					return errInterrupted
				}
				if ours.whole() && rivers.whole() {
					key := fmt.Sprint(p, c.Procs, c.Workers)
					ratios[key] = append(ratios[key], ours.JobsPerS/rivers.JobsPerS)
					rates[key] = append(rates[key], ours.JobsPerS)
				}
			}
		}
	}
	return printNetwork(stdout, all, cells, ratios, rates)
}

// drainBoth runs c with either engine, by turns one or the other first.
func drainBoth(ctx context.Context, c Cell, o options, p place, round int, stderr io.Writer) (ours, rivers Result) {
	for i := range 2 {
		name, to := "jobledger-pg", &ours
		if (i+round)%2 == 1 {
			name, to = "river-pg", &rivers
		}
		c.Engine, _ = engineNamed(name)
		*to = runOverNetwork(ctx, c, o, p)
		fmt.Fprintf(stderr, "round %d  %-32s %-13s %4d × %d  %8.0f jobs/s  %6.2f s  %s\n", round+1, p, name, c.Procs,
			c.Workers, to.JobsPerS, to.Seconds, to.Failure)
	}
	return ours, rivers
}

// printNetwork prints the medians of the rounds as a Markdown table.
func printNetwork(w io.Writer, all []place, cells []Cell, ratios, rates map[string][]float64) error {
	out := &printer{w: w}
	out.f("| drain ÷ River's (jobs/s); added to a round trip |")
	for _, c := range cells {
		out.f(" %d × %d |", c.Procs, c.Workers)
	}
	out.f("\n|---|%s\n", strings.Repeat("--:|", len(cells)))
	for _, p := range all {
		out.f("| %s |", p)
		for _, c := range cells {
			key := fmt.Sprint(p, c.Procs, c.Workers)
			out.f(" %.2f (%.0f) |", median(ratios[key]), median(rates[key]))
		}
		out.f("\n")
	}
	return out.err
}

// runOverNetwork runs c once, in a database of its own.
func runOverNetwork(ctx context.Context, c Cell, o options, p place) (r Result) {
	r = Result{Phase: c.Phase, Engine: c.Engine.Name, Workers: c.Workers, Procs: c.Procs, Jobs: c.Jobs}
	limit, cancel := context.WithTimeout(ctx, cellLimit)
	defer cancel()
	err := inPlace(limit, o, p, func(f File) error {
		if c.Procs > 1 {
			return drainInProcesses(limit, c, f, &r)
		}
		return drain(limit, c, f, &r)
	})
	if err != nil {
		r.Failure = err.Error()
	}
	return r
}

// inPlace calls do with a new database that clients reach over the network of p.
func inPlace(ctx context.Context, o options, p place, do func(f File) error) (err error) {
	direct, drop, err := newDatabase(ctx, o.postgres, o.sync)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, drop()) }()
	if p.sync > 0 {
		if err := slowDisk(ctx, direct, p.sync); err != nil {
			return err
		}
	}
	through, stop, err := delayed(ctx, direct, p.delay)
	if err != nil {
		return err
	}
	defer stop()
	return do(File{Sync: o.sync, New: true, URL: through, Direct: direct, AsItStands: true})
}
