package query

import (
	"cmp"
	"fmt"

	"jobledger/ledger/event"
)

// Zombie is a write that came too late: after its worker had lost the job.
type Zombie struct {
	event.Event        // refused
	Verdict     string // a sentence: whether the work was done twice
	Twice       bool   // it was, and with another result
}

// Zombies returns the refused writes among the events of one job, each with what its result says. The digests
// of all results of a job have one salt, so equal digests mean equal results.
func Zombies(events []event.Event) (zombies []Zombie) {
	var accepted *event.Succeeded
	for _, e := range events {
		if b, ok := e.Body.(*event.Succeeded); ok {
			accepted = b
		}
	}
	for _, e := range events {
		b, ok := e.Body.(*event.Refused)
		if !ok {
			continue
		}
		z := Zombie{Event: e}
		by := e.Worker.Name
		by = cmp.Or(by, e.Actor)
		switch {
		case b.Command != "succeed":
			z.Verdict = fmt.Sprintf("%s sent %s too late. It offered no result.", by, b.Command)
		case accepted == nil:
			z.Verdict = fmt.Sprintf("%s finished too late. There is no accepted result to compare its own with.", by)
		case b.OfferedSHA256 == accepted.ResultSHA256 && b.OfferedBytes == accepted.ResultBytes:
			z.Verdict = fmt.Sprintf("%s finished too late. Its result is equal to the accepted one.", by)
		default:
			z.Verdict = fmt.Sprintf("%s finished too late. Its result is NOT equal to the accepted one: "+
				"the work was done twice.", by)
			z.Twice = true
		}
		zombies = append(zombies, z)
	}
	return zombies
}
