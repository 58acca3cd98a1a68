package main

import (
	"fmt"
	"slices"
	"strings"
)

// phaseNames are the phases in the order of the report.
var phaseNames = []string{"enqueue", "batch", "drain", "procs"}

// batchSize is the number of jobs in one batch.
const batchSize = 1000

// Cell is one line of the report: one engine in one phase with so many workers.
type Cell struct {
	Phase   string
	Engine  Engine
	Workers int // callers or workers of each process
	Procs   int
	Jobs    int
}

// base tells whether the others of this phase are measured against c.
func (c Cell) base() bool {
	switch c.Phase {
	case "batch":
		return c.Engine.Name == "raw-batch"
	case "procs":
		return false
	default:
		return c.Engine.Name == "raw-ledger" && c.Workers == 8
	}
}

// basePhase returns the phase whose base c is measured against.
func (c Cell) basePhase() string {
	if c.Phase == "procs" {
		return "drain"
	}
	return c.Phase
}

func plan(o options) ([]Cell, error) {
	chosen := engines()
	if o.engines != "" {
		chosen = nil
		for name := range strings.SplitSeq(o.engines, ",") {
			e, ok := engineNamed(name)
			if !ok {
				return nil, fmt.Errorf("no engine %q", name)
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
			if e.Phases == nil || slices.Contains(e.Phases, phase) {
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
		c.Workers, c.Jobs = 1, o.batches*batchSize
		return []Cell{c}
	case "procs":
		c.Workers, c.Procs = o.procWorkers, o.procs
		c.Jobs = jobsOf(o, phase, e, c.Workers)
		return []Cell{c}
	}
	counts := []int{8, 64}
	if phase == "drain" {
		counts = append(counts, e.Workers...)
	}
	var cells []Cell
	for _, c.Workers = range counts {
		c.Jobs = jobsOf(o, phase, e, c.Workers)
		cells = append(cells, c)
	}
	return cells
}

func jobsOf(o options, phase string, e Engine, workers int) int {
	if e.Times == nil {
		return o.jobs
	}
	return max(1, int(e.Times(phase, workers)*float64(o.jobs)))
}
