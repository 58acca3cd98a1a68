// Package produce has the verbs that put jobs into queues.
//
//   - enqueue.go, enqueue_jsonl.go: [Verbs.Enqueue], one job or a file of them
//   - run.go, run_now.go: [Verbs.Run], a command in the foreground or the background
//   - relay.go: [Verbs.Relay], jobs from an outbox
//   - schedule.go, schedule_see.go: [Verbs.Schedule], jobs at set times
//   - schedule_import.go, schedule_import_lines.go, crontab.go: those of a crontab
//
// Held by TestReadSchedules and TestReadRefusesWithTheLine here, and by TestScripts/enqueue and
// TestRelayDrainSaysWhatItDid of the program.
package produce

import (
	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/projection"
)

// Verbs makes the verbs of this package, for a program.
type Verbs struct{ *cli.Program }

// at is v with its clock set to m.
func (p *Verbs) at(m projection.Moment) *Verbs { return &Verbs{p.At(m)} }
