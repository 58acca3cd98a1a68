package worker_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"jobledger/commands"
	"jobledger/commands/commandstest"
	"jobledger/commands/worker"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
	"jobledger/projection"
)

// endings are the ways in which handlers end, by their name in go.md and doc.go: what the handler does, and
// whether it fails its job.
var endings = map[string]ending{
	"result, nil":                             {returns(nil), false},
	"an error":                                {returns(errors.New("no")), true},
	"Error, also wrapped":                     {returns(errWrapped), true},
	"Permanent(err)":                          {returns(worker.Permanent(errWrapped)), true},
	"Snooze(d)":                               {returns(worker.Snooze(time.Hour)), false},
	"Cancel(reason)":                          {returns(worker.Cancel("gone")), false},
	"a panic":                                 {panics, true},
	"result, nil after " + itsTime:            {ignores, false},
	"an error after " + itsTime:               {obeys, true},
	"nothing after " + itsTime:                {stays, true},
	"result, nil after " + itsStop:            {ignores, false},
	"an error after " + itsStop:               {obeys, false},
	"nothing after " + itsStop:                {stays, false},
	"anything after a cancel or a lost lease": {obeys, false},
}

type ending struct {
	work  func(ctx context.Context) ([]byte, error)
	fails bool
}

func returns(err error) func(context.Context) ([]byte, error) {
	return func(context.Context) ([]byte, error) { return nil, err }
}

const (
	itsTime = "its max runtime"
	itsStop = "it was stopped with Run"
)

var errWrapped = fmt.Errorf("send: %w", worker.Error{Code: "smtp"})

func panics(context.Context) ([]byte, error) { panic("at the disco") }

func obeys(ctx context.Context) ([]byte, error) {
	<-ctx.Done()
	return nil, context.Cause(ctx)
}

func ignores(ctx context.Context) ([]byte, error) {
	<-ctx.Done()
	return []byte("done"), nil
}

func stays(ctx context.Context) ([]byte, error) {
	time.Sleep(10 * time.Minute)
	return []byte("late"), nil
}

// TestHandlersEndAsTheDocsSay: go.md and the comment of the package have each ending of a handler once, and
// what the ledger records then.
func TestHandlersEndAsTheDocsSay(t *testing.T) {
	ledgertest.OfSQLite(t)
	page := documented(t, "../../cmd/jobledger/docs/go.md", `(?m)^\| (.+?) \| \x60(\w+)\x60.* \| (yes|no) \|$`)
	comment := documented(t, "doc.go", `(?m)^//   - (.+?): (\w+)`)
	for name := range endings {
		if page[name] == nil || comment[name] == nil || page[name][2] != comment[name][2] {
			t.Errorf("%s: go.md has %q, doc.go %q", name, page[name], comment[name])
		}
	}
	for name, row := range page {
		e, ok := endings[name]
		if !ok {
			t.Errorf("go.md has %q, which is not tested", name)
			continue
		}
		synctest.Test(t, func(t *testing.T) {
			service := &commands.Service{Store: ledgertest.Open(t)}
			j := one(t, service, commands.Enqueue{MaxRuntime: runtimeOf(name)})
			w := newWorker(service, func(ctx context.Context, job projection.Job) ([]byte, error) {
				if strings.Contains(name, "a cancel") {
					if _, err := service.Cancel(ctx, "cli:ann", job.ID, ""); err != nil {
						t.Error(err)
					}
				}
				return e.work(ctx)
			})
			w.MaxJobs, w.Drain, w.SweepEvery = 1, false, 5*time.Second
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			if strings.Contains(name, itsStop) {
				time.AfterFunc(time.Minute, stop)
			}
			_, err := w.Run(ctx)
			if _, stuck := errors.AsType[*worker.StuckError](err); stuck != strings.HasPrefix(name, "nothing") {
				t.Errorf("%s: run: %v", name, err)
			}
			if strings.Contains(name, "nothing after "+itsTime) { // another worker's sweeps
				sweep(t, service, 2*time.Minute)
			}
			got := kinds(t, service, j.N)
			if now := get(t, service, j.ID); got[len(got)-1] != row[2] && !slices.Equal(got[2:], []string{row[2],
				"stopped"}) || e.fails != (now.Failures > 0) || e.fails != (row[3] == "yes") {
				t.Errorf("%s: %q, %d failures; go.md says %s", name, got, now.Failures, row[0])
			}
			time.Sleep(10 * time.Minute) // the handler that stayed is gone
			commandstest.Verify(t, service.Store)
		})
	}
}

func runtimeOf(name string) time.Duration {
	if strings.Contains(name, itsTime) {
		return time.Minute
	}
	return 0
}

// sweep sweeps for so long.
func sweep(t *testing.T, service *commands.Service, long time.Duration) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), long)
	defer stop()
	s := commands.Sweeper{Service: service, Actor: "sweeper:w2"}
	s.Run(ctx, 5*time.Second, func(_ commands.SweepReport, err error) {
		if err != nil {
			t.Error(err)
		}
	})
}

// documented returns what a page says of each ending, by its name.
func documented(t *testing.T, file, pattern string) map[string][]string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string][]string)
	for _, row := range regexp.MustCompile(pattern).FindAllStringSubmatch(string(text), -1) {
		name := strings.NewReplacer("`", "", "worker.", "", "[", "", "]", "",
			"{Code, Detail, RetryIn, NoRetry, Err}", "").Replace(row[1])
		if all[name] != nil {
			t.Errorf("%s has %q twice", file, name)
		}
		if _, err := event.ParseKind(row[2]); err == nil {
			all[name] = row
		}
	}
	return all
}
