package work

import (
	"context"
	"net/http"

	"jobledger/cmd/jobledger/internal/cli"
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
	boot := r.PathValue("boot")
	if asked.Boot != "" && asked.Boot != boot {
		return cli.Usagef("the body names another process than the address")
	}
	asked.Boot = boot
	process := asked.Event()
	if err := commands.CheckWorker(process); err != nil {
		return err
	}
	if err := mayUse(c, access.Work, asked.Queues...); err != nil {
		return err
	}
	m.Busy()
	m.coming.Lock()
	defer m.coming.Unlock()
	known := asked.Again
	if !known {
		if len(asked.Queues) == 0 {
			return &commands.InvalidError{Field: "queues", Allowed: "one queue at least"}
		}
		err := m.Service.Store.Read(r.Context(), func(tx *ledger.Tx) error {
			n, err := tx.Worker(r.Context(), process)
			known = n != 0
			return err
		})
		if err != nil {
			return err
		}
	}
	status := http.StatusCreated
	err := m.write(r, func(ctx context.Context) error {
		if known {
			status = http.StatusOK
			return m.Service.Present(ctx, process)
		}
		return m.Service.WorkerStarted(ctx, process, asked.Queues, asked.Capabilities)
	})
	if err != nil {
		return err
	}
	return m.send(w, r, status, wire.ProcessOf(process))
}

// goes records that a worker process has ended in an orderly way. That of one that is not there changes
// nothing.
func (m *Room) goes(w http.ResponseWriter, r *http.Request, _ Caller) error {
	if _, err := query(r); err != nil {
		return err
	}
	if _, err := body(w, r, 0); err != nil {
		return err
	}
	var process event.Worker
	there := false
	err := m.Service.Store.Read(r.Context(), func(tx *ledger.Tx) (err error) {
		process, there, err = projection.Present(r.Context(), tx, r.PathValue("boot"))
		return err
	})
	if err == nil && there {
		err = m.write(r, func(ctx context.Context) error { return m.Service.WorkerStopped(ctx, process) })
	}
	if err != nil {
		return err
	}
	return m.empty(w, r)
}
