package queues

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"jobledger/cmd/jobledger/internal/fault"
	"jobledger/cmd/jobledger/internal/web/act"
	"jobledger/cmd/jobledger/internal/web/frame"
	"jobledger/cmd/jobledger/internal/when"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/commands/remote/wire"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/group"
	"jobledger/projection/limit"
	"jobledger/projection/status"
)

// limitPage is the form of the limits of a queue, or of the exception of a group.
func (p *Pages) limitPage(w http.ResponseWriter, r *http.Request) error {
	of, err := groupOf(r)
	if err != nil {
		return err
	}
	title := "Limits of"
	if of != "" {
		title = "Limit of a group of"
	}
	return p.settingPage(w, r, title, of, &limitForm{acts: p.Acts, queue: r.PathValue("queue"), group: of})
}

// limitForm sets what bounds a queue, or one group of it.
type limitForm struct {
	acts         *act.Acts
	queue, group string
	at           status.Limited
	paused       bool
	groups       []group.Waiting
	to           limit.Spec
}

func (f *limitForm) Load(ctx context.Context, tx *ledger.Tx, now time.Time) (seen int64, err error) {
	if f.at, err = status.LimitsOf(ctx, tx, f.queue, projection.Now(now)); err != nil {
		return 0, err
	}
	if f.groups, _, err = status.Groups(ctx, tx, f.queue, projection.Now(now)); err != nil {
		return 0, err
	}
	q, err := projection.GetQueue(ctx, tx, f.queue)
	if err != nil {
		return 0, err
	}
	f.paused = q.Paused
	last, err := act.SetAt(ctx, tx, event.KindQueueLimited, f.queue, 0)
	return last.Pos, err
}

// from is what is set now.
func (f *limitForm) from() limit.Spec {
	if f.group != "" {
		x := f.at.Exceptions[f.group]
		return limit.Spec{Running: x.Running, Rate: x.Rate}
	}
	return f.at.Spec
}

// text says what s sets.
func (f *limitForm) text(s limit.Spec) string {
	if f.group != "" {
		return words.LimitText(limit.GroupSpec{Running: s.Running, Rate: s.Rate}.Body(f.queue, f.group, ""))
	}
	return words.LimitText(s.Body(f.queue, ""))
}

func (f *limitForm) Is(zone *time.Location) (text, by string) {
	since, actor, reason := f.at.Since, f.at.Actor, f.at.Reason
	if f.group != "" {
		x := f.at.Exceptions[f.group]
		since, actor, reason = x.Since, x.Actor, x.Reason
	}
	return f.text(f.from()), words.SetBy(since, actor, reason, zone)
}

func (f *limitForm) Fields() []frame.Field {
	s := f.from()
	number := func(name, label, hint string, n int) frame.Field {
		v := frame.Field{Name: name, Label: label, Hint: hint}
		if n > 0 {
			v.Value = strconv.Itoa(n)
		}
		return v
	}
	rate := func(name, label string, r limit.Rate) frame.Field {
		v := frame.Field{Name: name, Label: label, Hint: "such as 100/1m: a hundred in a minute, spread evenly"}
		if r.N > 0 {
			v.Value = strconv.Itoa(r.N) + "/" + words.Duration(r.Per)
		}
		return v
	}
	all := []frame.Field{number("running", "At once", "jobs that are claimed or running", s.Running)}
	if f.group == "" {
		all = append(all, number("per_group", "Of each group at once", "", s.PerGroup))
	}
	all = append(all, rate("rate", "Starts", s.Rate),
		number("burst", "Starts at once after a pause", "with starts", s.Rate.Burst))
	if f.group != "" {
		return all
	}
	ageing := frame.Field{Name: "ageing", Label: "Ageing",
		Hint: "such as 1m: waiting that makes up for one of priority"}
	if s.Ageing > 0 {
		ageing.Value = words.Duration(s.Ageing)
	}
	return append(all, rate("per_group_rate", "Starts of each group", s.PerGroupRate),
		number("per_group_burst", "Of each group at once after a pause", "with starts of each group",
			s.PerGroupRate.Burst), ageing)
}

func (f *limitForm) Read(given url.Values) (wrong []wire.InputError) {
	text := func(name string) string { return strings.TrimSpace(given.Get(name)) }
	bad := func(name string, err error) {
		if err != nil {
			wrong = append(wrong, wire.InputError{Field: name, Detail: err.Error()})
		}
	}
	number := func(name string, into *int) { bad(name, readNumber(text(name), event.MaxRunning, into)) }
	rate := func(name, burst string, into *limit.Rate) {
		number(burst, &into.Burst)
		if text(name) == "" {
			if into.Burst > 0 {
				bad(burst, fault.Usagef("needs a number of starts within a time"))
			}
			return
		}
		var err error
		into.N, into.Per, err = when.ParseRate(text(name))
		bad(name, err)
	}
	number("running", &f.to.Running)
	rate("rate", "burst", &f.to.Rate)
	if f.group != "" {
		return wrong
	}
	number("per_group", &f.to.PerGroup)
	rate("per_group_rate", "per_group_burst", &f.to.PerGroupRate)
	if text("ageing") != "" {
		d, err := when.DurationWithin(text("ageing"), time.Millisecond, event.MaxRatePer, false)
		bad("ageing", err)
		f.to.Ageing = d.Truncate(time.Microsecond)
	}
	return wrong
}

func (f *limitForm) Would() string { return f.text(f.to) }

func (f *limitForm) Effects() []string {
	return effectsOf(f.from(), f.to, f.at, f.group, f.groups, f.paused)
}

func (f *limitForm) Set(ctx context.Context, reason string, seen int64) (to string, err error) {
	s := act.Setting{Queue: f.queue, Group: f.group, Reason: reason, Seen: []int64{seen}}
	if f.group != "" {
		_, err = f.acts.LimitGroup(ctx, s, limit.GroupSpec{Running: f.to.Running, Rate: f.to.Rate})
	} else {
		_, err = f.acts.Limit(ctx, s, f.to)
	}
	return pathOf(f.queue), err
}

func (f *limitForm) Command(given url.Values) (words, _ []string) {
	words = []string{"limit", "--queue=" + f.queue}
	if f.group != "" {
		words = append(words, "--group="+f.group)
	}
	return append(words, flagsOf(given, "running", "per_group", "rate", "burst", "per_group_rate",
		"per_group_burst", "ageing")...), nil
}

// flagsOf are the flags for those of the fields that were filled in; none is: --off.
func flagsOf(given url.Values, names ...string) (flags []string) {
	for _, name := range names {
		if value := strings.TrimSpace(given.Get(name)); value != "" {
			flags = append(flags, "--"+fault.FlagOf(name)+"="+value)
		}
	}
	if len(flags) == 0 {
		return []string{"--off"}
	}
	return flags
}

// readNumber reads a number of one or more, up to most; nothing is 0.
func readNumber(text string, most int, into *int) (err error) {
	if text == "" {
		return nil
	}
	if *into, err = strconv.Atoi(text); err != nil || *into < 1 || *into > most {
		*into = 0
		return fault.Usagef("%q is not a number from 1 to %d", text, most)
	}
	return nil
}
