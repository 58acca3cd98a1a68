package queues

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"jobledger/cmd/jobledger/internal/web/act"
	"jobledger/cmd/jobledger/internal/web/frame"
	"jobledger/cmd/jobledger/internal/when"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/commands"
	"jobledger/commands/remote/wire"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/defaults"
	"jobledger/projection/status"
)

// defaultsPage is the form of what the jobs of a queue get by default.
func (p *Pages) defaultsPage(w http.ResponseWriter, r *http.Request) error {
	return p.settingPage(w, r, "Defaults of", "", &defaultsForm{acts: p.Acts, queue: r.PathValue("queue")})
}

// defaultsForm sets what the jobs of a queue get that set nothing themselves.
type defaultsForm struct {
	acts  *act.Acts
	queue string
	at    defaults.Defaults
	open  int64 // jobs that have not ended
	to    defaults.Spec
}

func (f *defaultsForm) Load(ctx context.Context, tx *ledger.Tx, now time.Time) (seen int64, err error) {
	set, err := defaults.Current(ctx, tx)
	if err != nil {
		return 0, err
	}
	f.at = set[f.queue]
	found, err := status.Queues{At: projection.Now(now)}.Read(ctx, tx)
	if err != nil {
		return 0, err
	}
	for _, q := range found {
		for state, n := range q.Jobs {
			if q.Name == f.queue && !state.Final() {
				f.open += n
			}
		}
	}
	last, err := act.SetAt(ctx, tx, event.KindQueueDefaults, f.queue, 0)
	return last.Pos, err
}

func (f *defaultsForm) Is(zone *time.Location) (text, by string) {
	return words.DefaultsText(f.at.Body(f.queue, "")), words.SetBy(f.at.Since, f.at.Actor, f.at.Reason, zone)
}

func (f *defaultsForm) Fields() []frame.Field {
	attempts := frame.Field{Name: "max_attempts", Label: "Attempts", Hint: "without it 5"}
	if f.at.MaxAttempts > 0 {
		attempts.Value = strconv.Itoa(f.at.MaxAttempts)
	}
	runtime := frame.Field{Name: "max_runtime", Label: "Max runtime of an attempt",
		Hint: "such as 5m; without it no limit"}
	if f.at.MaxRuntime > 0 {
		runtime.Value = words.Duration(f.at.MaxRuntime)
	}
	backoff := frame.Field{Name: "backoff", Label: "Backoff", Long: true,
		Hint: "without it " + words.BackoffText(event.DefaultBackoff)}
	if f.at.Backoff != (event.Backoff{}) {
		backoff.Value = words.BackoffText(f.at.Backoff)
	}
	return []frame.Field{attempts, runtime, backoff}
}

func (f *defaultsForm) Read(given url.Values) (wrong []wire.InputError) {
	text := func(name string) string { return strings.TrimSpace(given.Get(name)) }
	bad := func(name string, err error) {
		if err != nil {
			wrong = append(wrong, wire.InputError{Field: name, Detail: err.Error()})
		}
	}
	bad("max_attempts", readNumber(text("max_attempts"), commands.MaxMaxAttempts, &f.to.MaxAttempts))
	var err error
	if text("max_runtime") != "" {
		f.to.MaxRuntime, err = when.DurationWithin(text("max_runtime"), time.Millisecond, commands.MaxRunTime,
			false)
		bad("max_runtime", err)
	}
	if text("backoff") != "" {
		f.to.Backoff, err = when.ParseBackoff(text("backoff"))
		bad("backoff", err)
	}
	return wrong
}

func (f *defaultsForm) Would() string { return words.DefaultsText(f.to.Body(f.queue, "")) }

func (f *defaultsForm) Effects() []string {
	switch {
	case f.to == f.at.Spec:
		return []string{"It is so already: nothing would change."}
	case f.open == 0:
		return []string{"It concerns jobs that are enqueued from now on."}
	}
	return []string{"It concerns jobs that are enqueued from now on: " + words.Count(f.open, "job") +
		" of the queue that did not end yet " + words.Plural(f.open, "keeps what it has.", "keep what they have.")}
}

func (f *defaultsForm) Set(ctx context.Context, reason string, seen int64) (to string, err error) {
	_, err = f.acts.Defaults(ctx, act.Setting{Queue: f.queue, Reason: reason, Seen: []int64{seen}}, f.to)
	return pathOf(f.queue), err
}

func (f *defaultsForm) Command(given url.Values) (words, _ []string) {
	return append([]string{"queue", "set", "--queue=" + f.queue}, flagsOf(given, "max_attempts", "max_runtime",
		"backoff")...), nil
}
