package main

import (
	"fmt"
	"slices"
	"strings"
)

// phaseNames are the phases in the order of the report.
var phaseNames = []string{"enqueue", "batch", "drain", "procs", "latency", "transact", "commit"}

// batchSize is the number of jobs in one batch.
const batchSize = 1000

// Cell is one line of the report: one engine in one phase with so many workers.
type Cell struct {
	Phase   string
	Engine  Engine
	Workers int // callers or workers of each process
	Procs   int // in the latency phase 2, if another process than the one that enqueues works
	Jobs    int
}

// base tells whether the others of this phase are measured against c. On PostgreSQL they are measured against
// River at its best, which is known only once all have run.
func (c Cell) base() bool {
	switch c.Phase {
	case "latency", "procs", "transact", "commit":
		return false
	case "batch":
		return c.Engine.Name == "raw-batch"
	default:
		return c.Engine.Name == "raw-ledger" && c.Workers == 8
	}
}

// timed says that the phase measures times of single jobs, not jobs a second.
func (c Cell) timed() bool { return c.Phase == "latency" || c.Phase == "commit" }

// basePhase returns the phase whose base c is measured against.
func (c Cell) basePhase() string {
	if c.Phase == "procs" {
		return "drain"
	}
	return c.Phase
}

func plan(o options) ([]Cell, error) {
	chosen := slices.DeleteFunc(engines(), func(e Engine) bool {
		return e.Postgres && o.postgres == "" || e.Phases != nil && len(e.Phases) == 0 && !e.Transacts
	})
	if o.engines != "" {
		chosen = nil
		for name := range strings.SplitSeq(o.engines, ",") {
			e, ok := engineNamed(name)
			if !ok {
				return nil, fmt.Errorf("no engine %q", name)
			}
			if e.Postgres && o.postgres == "" {
				return nil, fmt.Errorf("%s needs a server: -postgres URL", name)
			}
			chosen = append(chosen, e)
		}
	}
	var cells []Cell
	for phase := range strings.SplitSeq(o.phases, ",") {
		if !slices.Contains(phaseNames, phase) {
			return nil, fmt.Errorf("no phase %q; there are %s", phase, strings.Join(phaseNames, ", "))
		}
		for _, e := range chosen {
			if phase == "transact" || phase == "commit" {
				if e.Transacts {
					cells = append(cells, cellsOf(o, phase, e)...)
				}
				continue
			}
			if e.Phases == nil && phase != "latency" || slices.Contains(e.Phases, phase) {
				cells = append(cells, cellsOf(o, phase, e)...)
			}
		}
	}
	return cells, nil
}

func cellsOf(o options, phase string, e Engine) []Cell {
	c := Cell{Phase: phase, Engine: e, Procs: 1}
	switch phase {
	case "batch":
		c.Workers, c.Jobs = 1, e.times(phase, 1, o.batches*batchSize)
		return []Cell{c}
	case "commit":
		c.Workers, c.Jobs = latencySlots, e.times(phase, latencySlots, o.latency+latencyWarmUp)
		return []Cell{c}
	case "latency":
		c.Workers, c.Jobs = latencySlots, e.times(phase, latencySlots, o.latency+latencyWarmUp)
		other := c
		other.Procs = 2
		return []Cell{c, other}
	}
	counts := []int{8, 64}
	switch phase {
	case "transact":
		counts = []int{1, 8, 64}
	case "drain":
		counts = append(counts, e.Workers...)
	case "procs":
		c.Procs = o.procs
		counts = append([]int{o.procWorkers}, e.InProcs...)
	}
	var cells []Cell
	for _, c.Workers = range counts {
		c.Jobs = e.times(phase, c.Workers, o.jobs)
		cells = append(cells, c)
	}
	return cells
}

// times is how many jobs a run of the engine gets where others get so many.
func (e Engine) times(phase string, workers, jobs int) int {
	if e.Times == nil {
		return jobs
	}
	return max(1, int(e.Times(phase, workers)*float64(jobs)))
}
