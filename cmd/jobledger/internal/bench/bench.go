package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"jobledger/cmd/jobledger/internal/words"
	"jobledger/commands"
	"jobledger/ledger"
)

// Phase is one kind of run.
type Phase struct {
	Name string
	Jobs int // of a run, unless Options say otherwise
}

// Phases returns all phases in the order of a tour.
func Phases() []Phase {
	return []Phase{
		{"enqueue", 4000},
		{"batch", 20_000},
		{"drain", 10_000},
		{"latency", 200},
		{"growth", 2000},
		{"verify", 10_000},
	}
}

// Options describe a run. The zero value of each field but Phase stands for its default.
type Options struct {
	Phase   string // the name of one of Phases
	Workers int    // workers or callers per process; default 16, and always 1 in the phases batch and verify
	Procs   int    // processes on the same ledger; default 1, and always 1 in the phase verify
	Jobs    int    // jobs of the run; default: those of the phase
	Payload int    // bytes per job, at least HeaderBytes; default 100
	Sync    string // durability of a commit, "full" or "normal"; default "full"
	Dir     string // the folder for the temporary one; default os.TempDir
}

// Result is what a run measured. A field that does not apply to the phase is nil. The JSON names never
// change.
type Result struct {
	Phase        string   `json:"phase"`
	Engine       string   `json:"engine"`
	Workers      int      `json:"workers"` // per process
	Procs        int      `json:"procs"`
	Jobs         int      `json:"jobs"`
	PayloadBytes int      `json:"payload_bytes"`
	Sync         string   `json:"sync"`
	Seconds      float64  `json:"seconds"`
	JobsPerS     *float64 `json:"jobs_per_s"` // nil in the phase latency, which paces its jobs
	P50          *float64 `json:"p50_ms"`
	P99          *float64 `json:"p99_ms"`
	Max          *float64 `json:"max_ms"`
	BytesPerJob  *float64 `json:"bytes_per_job"`
	SyncsPerJob  *float64 `json:"syncs_per_job"` // durable commits
	Executions   *int     `json:"executions"`
	Left         *int     `json:"left"`

	// DiskSyncs is how many times a second the disk makes a page of 4 KiB durable, measured just before the run.
	DiskSyncs float64 `json:"-"`
}

// ErrWrong means that the ledger lost a job, ran one twice, or failed its verification. It is a bug.
var ErrWrong = errors.New("bench: the ledger is wrong")

// wrongError is an ErrWrong with its details.
type wrongError struct{ text string }

func (e *wrongError) Error() string        { return e.text }
func (e *wrongError) Is(target error) bool { return target == ErrWrong }

func wrongf(format string, args ...any) error {
	return &wrongError{fmt.Sprintf(format, args...)}
}

// run is one run under way.
type run struct {
	Options
	db      string // the DSN of its ledger
	service *commands.Service
	result  *Result
}

// Run does one run and removes its folder. A Result whose Seconds are not 0 is complete even if there is an
// error, which then is ErrWrong or concerns the check after the run.
func Run(ctx context.Context, o Options) (r Result, err error) {
	if o, err = o.withDefaults(); err != nil {
		return r, err
	}
	r = Result{Phase: o.Phase, Engine: "jobledger", Workers: o.Workers, Procs: o.Procs, Jobs: o.Jobs,
		PayloadBytes: o.Payload, Sync: o.Sync}
	folder, err := os.MkdirTemp(o.Dir, "jobledger-bench-")
	if err != nil {
		return r, err
	}
	defer os.RemoveAll(folder)
	if folder, err = filepath.Abs(folder); err != nil {
		return r, err
	}
	if r.DiskSyncs, err = fsyncRate(folder); err != nil {
		return r, fmt.Errorf("measure the disk: %w", err)
	}
	db := "sqlite:" + filepath.Join(folder, "bench.db") + "?sync=" + o.Sync
	store, err := ledger.Open(ctx, db)
	if err != nil {
		return r, err
	}
	defer store.Close()
	b := &run{o, db, &commands.Service{Store: store}, &r}
	empty, err := b.snapshot(ctx, 0)
	if err != nil {
		return r, err
	}
	wrong := b.phases()[o.Phase](ctx)
	if wrong != nil && r.Seconds == 0 {
		return r, wrong
	}
	full, err := b.snapshot(ctx, 0)
	if err != nil {
		return r, err
	}
	r.BytesPerJob = new(float64(full.bytes-empty.bytes) / float64(full.jobs))
	return r, cmp.Or(wrong, b.check(ctx))
}

// withDefaults returns o with all fields set.
func (o Options) withDefaults() (Options, error) {
	phases := Phases()
	i := slices.IndexFunc(phases, func(p Phase) bool { return p.Name == o.Phase })
	if i < 0 {
		return o, fmt.Errorf("bench: there is no phase %q", o.Phase)
	}
	o.Workers, o.Procs, o.Jobs = cmp.Or(o.Workers, 16), cmp.Or(o.Procs, 1), cmp.Or(o.Jobs, phases[i].Jobs)
	o.Payload, o.Sync = cmp.Or(o.Payload, 100), cmp.Or(o.Sync, "full")
	switch o.Phase {
	case "batch":
		o.Workers = 1
	case "verify":
		o.Workers, o.Procs = 1, 1
	}
	if min(o.Workers, o.Procs, o.Jobs) < 1 || o.Payload < HeaderBytes || o.Sync != "full" && o.Sync != "normal" {
		return o, fmt.Errorf("bench: an option is out of range: %+v", o)
	}
	return o, nil
}

// Table is results for people.
func Table(results []Result) *words.Table {
	t := &words.Table{Columns: []words.Column{{Title: "PHASE"}}}
	for _, title := range []string{"WORKERS", "JOBS", "SECONDS", "JOBS/S", "P50 MS", "P99 MS", "MAX MS",
		"BYTES/JOB", "SYNCS/JOB", "RUN", "LEFT", "DISK SYNCS/S"} {
		t.Columns = append(t.Columns, words.Column{Title: title, Right: true})
	}
	for _, r := range results {
		workers := fmt.Sprint(r.Workers)
		if r.Procs > 1 {
			workers = fmt.Sprintf("%d × %d", r.Procs, r.Workers)
		}
		t.Add(r.Phase, workers, fmt.Sprint(r.Jobs), fmt.Sprintf("%.2f", r.Seconds), orDash("%.0f", r.JobsPerS),
			orDash("%.2f", r.P50), orDash("%.2f", r.P99), orDash("%.2f", r.Max), orDash("%.0f", r.BytesPerJob),
			orDash("%.3f", r.SyncsPerJob), orDash("%d", r.Executions), orDash("%d", r.Left),
			fmt.Sprintf("%.0f", r.DiskSyncs))
	}
	return t
}

func orDash[T any](format string, v *T) string {
	if v == nil {
		return "–"
	}
	return fmt.Sprintf(format, *v)
}
