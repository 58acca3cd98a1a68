package work

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"

	"jobledger/cmd/jobledger/internal/fault"
	"jobledger/cmd/jobledger/internal/web/access"
	"jobledger/commands"
	"jobledger/commands/remote/wire"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
)

// comes records that a worker process has started, once, and from then on that it is there.
func (m *Room) comes(w http.ResponseWriter, r *http.Request, c Caller) error {
	var asked wire.Worker
	if err := read(w, r, MaxOne, &asked); err != nil {
		return err
	}
	boot, err := bootOf(r)
	if err != nil {
		return err
	}
	if asked.Boot != "" && asked.Boot != boot {
		return fault.Usagef("the body names another process than the address")
	}
	asked.Boot = boot
	process := asked.Event()
	err = cmp.Or(commands.CheckWorker(process), commands.ReservedLabel("capability", asked.Capabilities))
	if err != nil {
		return err
	}
	if err := mayUse(c, access.Work, asked.Queues...); err != nil {
		return err
	}
	if err := m.fits(r.Context(), process, asked.Queues, asked.Capabilities); err != nil {
		return err
	}
	m.Busy()
	arrived(w)
	m.coming.Lock()
	defer m.coming.Unlock()
	known := asked.Again
	if !known {
		if len(asked.Queues) == 0 {
			return &commands.InvalidError{Field: "queues", Allowed: "one queue at least"}
		}
		said, err := m.saidBy(r.Context(), process)
		if err != nil {
			return err
		}
		known = said != nil
	}
	status := http.StatusCreated
	err = m.write(w, r, func(ctx context.Context) error {
		if known {
			status = http.StatusOK
			return m.Service.Present(ctx, process)
		}
		return m.Service.WorkerStarted(ctx, process, asked.Queues, asked.Capabilities)
	})
	if err != nil {
		return err
	}
	if !known {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.started[process] = &event.WorkerStarted{Queues: asked.Queues, Capabilities: asked.Capabilities}
	}
	return m.send(w, r, status, wire.ProcessOf(process))
}

// bootOf is the boot that the address of r names: a ULID, so that no other process has the same.
func bootOf(r *http.Request) (string, error) {
	boot := r.PathValue("boot")
	if !isULID(boot) {
		return "", &commands.InvalidError{Field: "boot", Got: fmt.Sprintf("%.40q", boot),
			Allowed: "a ULID in capitals, which the process makes at its start"}
	}
	return boot, nil
}

// maxStarted is how many processes the room remembers.
const maxStarted = 4096

// fits returns an InvalidError if the process announced other queues, or lacks these capabilities. One that
// has said nothing may take anything.
func (m *Room) fits(ctx context.Context, process event.Worker, queues, capabilities []string) error {
	m.mu.Lock()
	said, known := m.started[process]
	m.mu.Unlock()
	if !known {
		var err error
		if said, err = m.saidBy(ctx, process); err != nil {
			return err
		}
		m.mu.Lock()
		if len(m.started) >= maxStarted {
			clear(m.started)
		}
		m.started[process] = said
		m.mu.Unlock()
	}
	if said == nil {
		return nil
	}
	for _, q := range queues {
		if !slices.Contains(said.Queues, q) {
			return &commands.InvalidError{Field: "queue", Got: q, Allowed: "those that the process has started for"}
		}
	}
	for _, label := range capabilities {
		if !slices.Contains(said.Capabilities, label) {
			return &commands.InvalidError{Field: "capability", Got: label,
				Allowed: "those that the process has started with"}
		}
	}
	return nil
}

// saidBy is what the process announced at its start; nil: nothing, or it has stopped since.
func (m *Room) saidBy(ctx context.Context, process event.Worker) (said *event.WorkerStarted, err error) {
	err = m.Service.Store.Read(ctx, func(tx *ledger.Tx) error {
		filter := ledger.Filter{Worker: process.Name,
			Kinds: []event.Kind{event.KindWorkerStarted, event.KindWorkerStopped}}
		for e, err := range tx.Events(ctx, filter) {
			if err != nil {
				return err
			}
			if e.Worker == process {
				said, _ = e.Body.(*event.WorkerStarted)
			}
		}
		return nil
	})
	return said, err
}

// goes records that a worker process has ended in an orderly way. That of one that is not there, or did not
// say that it started, changes nothing.
func (m *Room) goes(w http.ResponseWriter, r *http.Request, _ Caller) error {
	boot, err := bootOf(r)
	if err != nil {
		return err
	}
	if _, err := query(r); err != nil {
		return err
	}
	if _, err := body(w, r, MaxOne); err != nil { // it says nothing
		return err
	}
	m.coming.Lock()
	defer m.coming.Unlock()
	var process event.Worker
	there := false
	err = m.Service.Store.Read(r.Context(), func(tx *ledger.Tx) (err error) {
		process, there, err = projection.Present(r.Context(), tx, boot)
		return err
	})
	if err == nil && there {
		var said *event.WorkerStarted
		said, err = m.saidBy(r.Context(), process)
		there = said != nil
	}
	if err == nil && there {
		m.mu.Lock()
		delete(m.started, process)
		m.mu.Unlock()
		err = m.write(w, r, func(ctx context.Context) error { return m.Service.WorkerStopped(ctx, process) })
	}
	if err != nil {
		return err
	}
	return m.empty(w, r)
}
