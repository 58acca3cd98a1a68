package queues

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"jobledger/cmd/jobledger/internal/web/act"
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

func (*defaultsForm) kind() event.Kind { return event.KindQueueDefaults }

func (f *defaultsForm) load(ctx context.Context, tx *ledger.Tx, now time.Time) error {
	set, err := defaults.Current(ctx, tx)
	if err != nil {
		return err
	}
	f.at = set[f.queue]
	found, err := status.Queues{At: projection.Now(now)}.Read(ctx, tx)
	for _, q := range found {
		for state, n := range q.Jobs {
			if q.Name == f.queue && !state.Final() {
				f.open += n
			}
		}
	}
	return err
}

func (f *defaultsForm) is(zone *time.Location) (text, by string) {
	return words.DefaultsText(f.at.Body(f.queue, "")), setBy(f.at.Since, f.at.Actor, f.at.Reason, zone)
}

func (f *defaultsForm) fields() []fieldView {
	attempts := fieldView{Name: "max_attempts", Label: "Attempts", Hint: "without it 5"}
	if f.at.MaxAttempts > 0 {
		attempts.Value = strconv.Itoa(f.at.MaxAttempts)
	}
	runtime := fieldView{Name: "max_runtime", Label: "Max runtime of an attempt",
		Hint: "such as 5m; without it no limit"}
	if f.at.MaxRuntime > 0 {
		runtime.Value = words.Duration(f.at.MaxRuntime)
	}
	backoff := fieldView{Name: "backoff", Label: "Backoff", Long: true,
		Hint: "without it " + words.BackoffText(event.DefaultBackoff)}
	if f.at.Backoff != (event.Backoff{}) {
		backoff.Value = words.BackoffText(f.at.Backoff)
	}
	return []fieldView{attempts, runtime, backoff}
}

func (f *defaultsForm) read(given url.Values) (wrong []wire.InputError) {
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

func (f *defaultsForm) would() string { return words.DefaultsText(f.to.Body(f.queue, "")) }

func (f *defaultsForm) effects() []string {
	switch {
	case f.to == f.at.Spec:
		return []string{"It is so already: nothing would change."}
	case f.open == 0:
		return []string{"It concerns jobs that are enqueued from now on."}
	}
	return []string{"It concerns jobs that are enqueued from now on: " + words.Count(f.open, "job") +
		" of the queue that did not end yet " + words.Plural(f.open, "keeps what it has.", "keep what they have.")}
}

func (f *defaultsForm) set(ctx context.Context, s act.Setting) error {
	_, err := f.acts.Defaults(ctx, s, f.to)
	return err
}

func (f *defaultsForm) command(given url.Values) []string {
	return append([]string{"queue", "set", "--queue=" + f.queue}, flagsOf(given, "max_attempts", "max_runtime",
		"backoff")...)
}
