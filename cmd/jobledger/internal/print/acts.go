package print

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"jobledger/cmd/jobledger/internal/words"
	"jobledger/ledger/event"
	"jobledger/projection/query"
)

// ActWords is what an operator did, to what, in a few words: paused mail.
func ActWords(a query.Act) string {
	kind := a.Kind().String()
	for _, about := range []string{"queue_", "schedule_"} {
		verb, ok := strings.CutPrefix(kind, about)
		switch {
		case !ok:
		case about == "schedule_":
			return verb + " schedule " + a.About()
		case a.Kind() == event.KindQueueDefaults:
			return verb + " of " + a.About()
		default:
			return verb + " " + a.About()
		}
	}
	switch {
	case a.N == 0:
		return kind
	case a.Count > 1:
		kind += " " + words.Count(int64(a.Count), "job")
	default:
		kind += " a job"
	}
	if a.Spread >= time.Second {
		kind += ", spread over " + words.Roughly(a.Spread)
	}
	return kind
}

// MoreActs says how many acts came before those listed; "": none.
func MoreActs(a query.ActList) string {
	switch {
	case a.More == 0 && !a.Older:
		return ""
	case a.Older:
		return fmt.Sprintf("and at least %d more before", a.More)
	}
	return fmt.Sprintf("and %d more before", a.More)
}

// FindingText is f in a sentence, with times in zone.
func FindingText(f query.Finding, zone *time.Location) string {
	clock := func(t time.Time) string { return t.In(zone).Format("15:04:05") }
	who, began := strings.Join(f.Workers, ", "), clock(f.At)
	switch f.Kind {
	case "pause":
		by := fmt.Sprintf("by %s: %s.", f.By, words.ReasonOrNone(f.Reason))
		if f.Until.IsZero() {
			return fmt.Sprintf("Queue %s is paused since %s, %s", f.Queue, began, by)
		}
		return fmt.Sprintf("Queue %s was paused from %s to %s, %s", f.Queue, began, clock(f.Until), by)
	case "deploy":
		return fmt.Sprintf("From %s on %s ran %s in place of %s.", began, who, cmp.Or(f.After, "no version"),
			cmp.Or(f.Before, "no version"))
	case "outage":
		text := fmt.Sprintf("%s of %s failed with %s from %s to %s", words.Count(int64(f.Jobs), "attempt"),
			f.Queue, f.Code, began, clock(f.Until))
		if f.Detail != "" {
			text += ": " + words.Shorten(f.Detail)
		}
		return text + "."
	case "frozen":
		return fmt.Sprintf("%s stopped at %s and went on at %s: in between its job was taken back, so its write "+
			"was refused.", who, began, clock(f.Until))
	case "silent", "dead_host":
		subject := strings.Join(f.Workers, " and ")
		if f.Host != "" {
			subject = fmt.Sprintf("Host %s (%s)", f.Host, who)
		}
		text := fmt.Sprintf("%s fell silent at %s. ", subject, began)
		switch f.Jobs {
		case 0:
			text += "No job was taken back from it."
		case 1:
			text += fmt.Sprintf("One job was taken back, at %s.", clock(f.Taken))
		default:
			text += fmt.Sprintf("%s were taken back, the first at %s.", words.Count(int64(f.Jobs), "job"),
				clock(f.Taken))
		}
		if !f.Until.IsZero() {
			text += fmt.Sprintf(" Started again by %s.", clock(f.Until))
		}
		return text
	}
	return f.Detail
}
