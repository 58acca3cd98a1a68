package hook

import (
	"context"
	"errors"
	"os"
	"reflect"
	"sync"
	"time"

	"jobledger/commands"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/process"
)

// How often the dispatcher looks.
const (
	filePoll   = time.Second
	eventsPoll = time.Second // for what no notification announces
	retryPause = time.Second // after an error of the ledger
)

// Dispatcher sends what the webhooks in a file are to get, until its context ends. Several of the same ledger
// do no harm. Fill in the fields and call Run once.
type Dispatcher struct {
	Service *commands.Service
	Path    string // the file; it is read again when it changes
	Host    string // of this process, as the ledger names it

	Busy   func()                           // called when there are webhooks; nil: not called
	Report func(format string, args ...any) // logs what goes wrong, in one line

	running map[string]*running // by name
	source  string
	looked  os.FileInfo // the file as it was read
	failed  bool        // the last look at it
}

// running is an endpoint whose events are sent.
type running struct {
	endpoint Endpoint
	stop     context.CancelFunc
	done     chan struct{}
}

// Run sends until ctx ends.
func (d *Dispatcher) Run(ctx context.Context) {
	d.running = make(map[string]*running)
	defer d.keep(nil)
	ticker := time.NewTicker(filePoll)
	defer ticker.Stop()
	for {
		d.look(ctx)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// look reads the file if it has changed, and starts and ends what it says.
func (d *Dispatcher) look(ctx context.Context) {
	info, err := os.Stat(d.Path)
	if err == nil && d.looked != nil && os.SameFile(info, d.looked) &&
		info.ModTime().Equal(d.looked.ModTime()) && info.Size() == d.looked.Size() {
		return
	}
	if err != nil && d.looked == nil {
		return // there are no webhooks
	}
	f, err := Read(d.Path)
	if err != nil {
		if !d.failed {
			d.Report("webhooks: %v; those that run go on", err)
		}
		d.failed = true
		return
	}
	d.failed, d.looked, d.source = false, info, f.Source
	d.keep(f.Endpoints)
	for _, e := range f.Endpoints {
		if d.running[e.Name] == nil {
			d.start(ctx, e)
		}
	}
	if len(f.Endpoints) > 0 && d.Busy != nil {
		d.Busy()
	}
}

// keep stops all senders that do not match endpoints, and waits for them.
func (d *Dispatcher) keep(endpoints []Endpoint) {
	var ended []*running
	for name, r := range d.running {
		same := false
		for _, e := range endpoints {
			same = same || e.Name == name && reflect.DeepEqual(e, r.endpoint)
		}
		if !same {
			r.stop()
			ended = append(ended, r)
			delete(d.running, name)
		}
	}
	for _, r := range ended {
		<-r.done
	}
}

func (d *Dispatcher) start(ctx context.Context, e Endpoint) {
	within, stop := context.WithCancel(ctx)
	r := &running{e, stop, make(chan struct{})}
	d.running[e.Name] = r
	go func() {
		defer close(r.done)
		d.run(within, e)
	}()
}

// run sends to one endpoint until ctx ends, or the ledger is gone.
func (d *Dispatcher) run(ctx context.Context, e Endpoint) {
	self := event.Worker{Name: "webhook-" + e.Name, Boot: process.NewBoot(), Host: d.Host, PID: os.Getpid()}
	if err := d.Service.WorkerStarted(ctx, self, []string{e.Queue()}, nil); err != nil {
		d.Report("webhook %s: %v", e.Name, err)
	}
	var presence sync.WaitGroup
	presence.Go(func() { d.present(ctx, self) })
	s := newSender(e)
	defer s.close()
	in := &feed{service: d.Service, endpoint: e, report: d.Report, most: maxWaiting}
	out := &deliverer{service: d.Service, sender: s, source: d.source, process: self, report: d.Report}
	woken, unsubscribe := d.Service.Store.Watch()
	defer unsubscribe()
	ended, unsubscribeEnded := d.Service.Store.WatchEnded()
	defer unsubscribeEnded()
	failed := false
	for ctx.Err() == nil {
		more, err := in.step(ctx)
		var next time.Time
		if err == nil {
			next, err = out.step(ctx)
		}
		wait := eventsPoll
		switch {
		case ctx.Err() != nil:
		case isGone(err):
			return
		case err != nil:
			if !failed {
				d.Report("webhook %s: %v", e.Name, err)
			}
			wait = retryPause
		case more:
			wait = 0
		case !next.IsZero():
			wait = min(wait, time.Until(next))
		}
		failed = err != nil
		if wait <= 0 {
			continue
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-woken:
		case <-ended:
		case <-timer.C:
		}
		timer.Stop()
	}
	if err := out.record(ctx); err != nil {
		d.Report("webhook %s: %v", e.Name, err)
	}
	presence.Wait()
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainFor)
	defer cancel()
	if err := d.Service.WorkerStopped(last, self); err != nil && !isGone(err) {
		d.Report("webhook %s: %v", e.Name, err)
	}
}

// present says that the process lives, until ctx ends.
func (d *Dispatcher) present(ctx context.Context, process event.Worker) {
	ticker := time.NewTicker(commands.PresentEvery)
	defer ticker.Stop()
	for {
		if err := d.Service.Present(ctx, process); isGone(err) {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// isGone reports whether the ledger cannot be used any more.
func isGone(err error) bool {
	return errors.Is(err, ledger.ErrReplaced) || errors.Is(err, ledger.ErrClosed) ||
		errors.Is(err, ledger.ErrDamaged)
}
