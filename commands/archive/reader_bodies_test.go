package archive_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"jobledger/commands"
	"jobledger/commands/archive"
	"jobledger/ledger"
	"jobledger/ledger/ledgertest"
	"jobledger/projection/audit"
)

// A copy that answers for a ledger does not miss the payloads that left it with their jobs. One that is
// missing of a job which did not leave is found all the same.
func TestCopyMissesNoBodyThatLeft(t *testing.T) {
	t.Parallel()
	s, dir := &commands.Service{Store: ledgertest.Open(t)}, filepath.Join(t.TempDir(), "archive")
	var requests []commands.Enqueue
	for i := range 300 {
		requests = append(requests, commands.Enqueue{Queue: "mail", Payload: fmt.Append(nil, "payload ", i)})
	}
	jobs, err := s.Enqueue(t.Context(), actor, requests...)
	for i := 0; err == nil && i < 40; i++ {
		_, err = s.Apply(t.Context(), actor, jobs[2*i].Job.ID, commands.Cancel{})
	}
	if err == nil {
		_, err = s.Enqueue(t.Context(), actor, requests...)
	}
	if err == nil {
		_, err = archive.Close(t.Context(), s, 512, archive.Options{Dir: dir, Actor: actor})
	}
	if err != nil {
		t.Fatal(err)
	}
	m := archive.Removal{Service: s, Dir: dir, Actor: actor}
	if gone, err := m.All(t.Context(), nil); err != nil || gone.Jobs != 40 {
		t.Fatalf("removed %+v, %v", gone, err)
	}
	copied := func() []audit.Finding {
		t.Helper()
		whole, err := archive.Reader{Store: s.Store, Dir: dir}.Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer whole.Close()
		if got := whole.LedgerPath(); got != s.Store.Path() {
			t.Errorf("the copy is of %s, want %s", got, s.Store.Path())
		}
		var report audit.Verified
		err = whole.Read(t.Context(), func(tx *ledger.Tx) (err error) {
			report, err = audit.VerifyWindow(t.Context(), tx, 0, 640, nil)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return report.Findings
	}
	if found := copied(); len(found) > 0 {
		t.Errorf("the copy has findings, the first of them is %+v", found[0])
	}
	verify(t, s.Store)
	lost := jobs[1].Job
	err = s.Store.Write(t.Context(), func(tx *ledger.Tx) error {
		_, _, err := tx.EraseBodiesAt(t.Context(), []int64{lost.N}, func() error { return nil })
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	found := copied()
	if len(found) != 1 || found[0].Code != audit.FindBody || found[0].Pos != lost.N {
		t.Errorf("a payload is missing, found %+v", found)
	}
}
