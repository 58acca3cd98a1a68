package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"jobledger/cmd/jobledger/internal/web/access"
	"jobledger/commands"
	"jobledger/commands/commandstest"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
)

// Each client in testdata/clients does the jobs of a queue over HTTP.
func TestClientsInOtherLanguagesWork(t *testing.T) {
	t.Parallel()
	s := commandstest.New(t)
	s.Store.Now = time.Now
	server := serveStore(t, s.Store, time.Now)
	token, _, err := access.Create(server.access, access.Request{Name: "w", Scopes: []access.Scope{access.Work},
		Queues: []string{"*"}}, time.Now())
	check(t, err)
	for _, command := range [][]string{{"python3", "worker.py"}, {"node", "worker.mjs"}, {"bash", "worker.sh"}} {
		t.Run(command[0], func(t *testing.T) {
			t.Parallel()
			for _, tool := range map[string][]string{"bash": {"bash", "curl", "jq"}, "node": {"node"},
				"python3": {"python3"}}[command[0]] {
				if _, err := exec.LookPath(tool); err != nil && os.Getenv("CI") != "true" {
					t.Skip(tool + " is not installed") // in CI that is a failure
				}
			}
			const jobs = 3
			var ids []event.JobID
			for i := range jobs {
				got, err := s.Enqueue(t.Context(), "cli:test", commands.Enqueue{Queue: command[0],
					Payload: fmt.Appendf(nil, "say \"ü\" %d", i)})
				check(t, err)
				ids = append(ids, got[0].ID)
			}
			cmd := exec.CommandContext(t.Context(), command[0], // #nosec G204 -- those above
				filepath.Join("..", "..", "testdata", "clients", command[1]), command[0], fmt.Sprint(jobs))
			cmd.Env = append(os.Environ(), "JOBLEDGER_URL="+server.base, "JOBLEDGER_API_TOKEN="+token)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			check(t, s.Store.Read(t.Context(), func(tx *ledger.Tx) error {
				for i, id := range ids {
					j, ok, err := projection.Get(t.Context(), tx, id)
					if err == nil && ok {
						err = projection.LoadBodies(t.Context(), tx, &j)
					}
					if want := fmt.Sprintf("SAY \"Ü\" %d", i); command[0] != "bash" && string(j.Result) != want ||
						j.State != event.SucceededState || err != nil {
						t.Errorf("job %d: %s with the result %q, %v", i, j.State, j.Result, err)
					}
				}
				return nil
			}))
		})
	}
	t.Cleanup(func() { commandstest.Verify(t, s.Store) })
}
