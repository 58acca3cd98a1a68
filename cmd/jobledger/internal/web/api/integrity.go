package api

import (
	"context"
	"net/http"
	"time"

	"jobledger/cmd/jobledger/internal/doctor"
	"jobledger/cmd/jobledger/internal/prove"
	"jobledger/cmd/jobledger/internal/web/door"
	"jobledger/cmd/jobledger/internal/web/view"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/tree"
	"jobledger/projection/audit"
)

// Books are what is known of the ledger as a whole, of at most a moment ago.
func (a *API) Books(ctx context.Context) (view.Books, error) {
	return a.books.Read(0, func() (b view.Books, err error) {
		return ledger.Read(ctx, a.Store, func(tx *ledger.Tx) (view.Books, error) {
			return view.ReadBooks(ctx, tx)
		})
	})
}

// examinedFor is how long the findings of an examination are used again at least: it looks at files and
// processes.
const examinedFor = 5 * time.Second

// Examined returns what the verb doctor finds.
func (a *API) Examined(ctx context.Context) ([]doctor.Finding, error) {
	return a.examined.Read(examinedFor, func() ([]doctor.Finding, error) { return a.Examine(ctx) })
}

// integrity sends what was verified, and what is known of the ledger as a whole.
func (a *API) integrity(w http.ResponseWriter, r *http.Request) error {
	if _, err := ReadParams(r, nil); err != nil {
		return err
	}
	return a.sendIntegrity(w, r)
}

// checkAll has the whole ledger verified, and sends what was verified before that.
func (a *API) checkAll(w http.ResponseWriter, r *http.Request) error {
	if _, err := ReadParams(r, nil); err != nil {
		return err
	}
	a.Verifier.AskWhole()
	return a.sendIntegrity(w, r)
}

// verifiedJSON is what was verified.
type verifiedJSON struct {
	Since    int64           `json:"since"`             // the events after this one were verified
	Until    int64           `json:"until"`             // up to this one
	At       *string         `json:"at"`                // when; null: not yet
	Running  bool            `json:"running"`           // a check is under way
	Findings []audit.Finding `json:"findings,omitzero"` // what was found, the first of it
}

// integrityJSON is what was verified, and what is known of the ledger as a whole.
type integrityJSON struct {
	verifiedJSON `openapi:"required=findings"`
	// an event could not be read or folded; later ones were not checked
	Stopped bool        `json:"stopped"`
	Checks  []checkJSON `json:"checks"` // each check of verify
	Whole   wholeJSON   `json:"whole"`  // the last check of the whole ledger
	// the last event, and the checkpoint of all, as the command checkpoint prints it without a key
	Head     headJSON     `json:"head"`
	Seals    sealsJSON    `json:"seals"`
	Restores happenedJSON `json:"restores"`
	Rebuilds happenedJSON `json:"rebuilds"`
	Imports  happenedJSON `json:"imports"`
	Erased   int64        `json:"erased_jobs"` // jobs whose payload and result were erased
	Archive  archiveJSON  `json:"archive"`
	// what the command doctor finds, of at most some seconds ago; null without the scope operate
	Doctor *[]doctor.Finding `json:"doctor"`
}

type checkJSON struct {
	Code     string `json:"code"`
	Finds    string `json:"finds"`    // what is wrong if it finds something
	Findings int    `json:"findings"` // how many it has
	Until    *int64 `json:"until"`    // the event up to which it was carried out; null: it was not yet
}

type wholeJSON struct {
	Until   *int64   `json:"until"`   // up to this event; null: there was none
	At      *string  `json:"at"`      // when it ended
	Seconds *float64 `json:"seconds"` // how long it took
	// when the next one is due; null: only when it is asked for
	Next *string `json:"next" openapi:"format=date-time"`
}

type headJSON struct {
	Pos      int64   `json:"pos"`
	At       *string `json:"at"`
	Unsealed int64   `json:"unsealed"` // events after the last block that has a hash
	// the name of the ledger; null: sealing is off, or too many events are unsealed
	Origin *string `json:"origin"`
	Root   *string `json:"root"` // of the hash tree over all events, in base64
	Text   *string `json:"text"` // the checkpoint, to be kept elsewhere
}

type sealsJSON struct {
	Sealing    bool      `json:"sealing"` // events are sealed
	Count      int64     `json:"count"`
	HandedOut  int64     `json:"handed_out"` // those that are checkpoints which were handed out
	Last       *sealJSON `json:"last"`       // null: there is none
	Checkpoint *sealJSON `json:"checkpoint"` // the last one that was handed out; null: there is none
	// what the ledger is in comparison with the checkpoint
	Verdict *prove.Verdict `json:"verdict" openapi:"enum=same,differs,shorter,foreign"`
}

// sealJSON is a root of the hash tree that was said.
type sealJSON struct {
	Size int64  `json:"size"` // how many events are below it
	At   string `json:"at"`
	Root string `json:"root"` // in base64
}

type happenedJSON struct {
	Count int64      `json:"count"`
	Last  *eventName `json:"last"` // null: never
}

type eventName struct {
	Pos   int64  `json:"pos"`
	At    string `json:"at"`
	Actor string `json:"actor"`
}

type archiveJSON struct {
	Files         int64   `json:"files"`
	Events        int64   `json:"events"`       // in these files
	RemovedJobs   int64   `json:"removed_jobs"` // jobs that have left the ledger
	RemovedEvents int64   `json:"removed_events"`
	RemovedAt     *string `json:"removed_at"` // when the last of them left
}

func (a *API) sendIntegrity(w http.ResponseWriter, r *http.Request) error {
	v := a.Verifier.Last()
	b, err := a.Books(r.Context())
	if err != nil {
		return err
	}
	s := b.State
	out := integrityJSON{verifiedJSON: verified(v), Stopped: v.Stopped, Checks: []checkJSON{},
		Whole: wholeJSON{At: words.TimeOrNull(v.WholeAt), Next: words.TimeOrNull(v.Next)},
		Head:  headJSON{Pos: b.Last.Pos, At: words.TimeOrNull(b.Last.At), Unsealed: s.Unsealed},
		Seals: sealsJSON{Sealing: s.On, Count: s.Seals, HandedOut: s.HandedOut, Last: sealOf(s.Last),
			Checkpoint: sealOf(s.LastHandedOut)},
		Restores: happenedOf(b.Restores), Rebuilds: happenedOf(b.Rebuilds), Imports: happenedOf(b.Imports),
		Erased: b.Erased, Archive: archiveJSON{b.Segments, b.InArchive, b.Removed.Jobs, b.Removed.Events,
			words.TimeOrNull(b.Removed.At)}}
	for _, c := range v.Checks() {
		check := checkJSON{Code: c.Code, Finds: c.Finds, Findings: c.Findings}
		if c.Done {
			check.Until = &c.Until
		}
		out.Checks = append(out.Checks, check)
	}
	if !v.WholeAt.IsZero() {
		out.Whole.Until, out.Whole.Seconds = &v.Whole, new(v.WholeTook.Seconds())
	}
	if s.Head != nil {
		text, err := s.Head.SignWith(nil)
		if err != nil {
			return err
		}
		out.Head.Pos, out.Head.Origin, out.Head.Text = s.Size, &s.Head.Origin, words.TextOrNull(string(text))
		out.Head.Root = words.TextOrNull(s.Head.Root.String())
	}
	if s.Compared != nil {
		out.Seals.Verdict = &s.Compared.Verdict
	}
	if door.CallerOf(r.Context()).Has(door.Operate) {
		if found, err := a.Examined(r.Context()); err == nil {
			found = append([]doctor.Finding{}, found...)
			out.Doctor = &found
		} else {
			a.Report("doctor: %v", err)
		}
	}
	return sendJSON(w, v.Until, out)
}

func sealOf(s *tree.Seal) *sealJSON {
	if s == nil {
		return nil
	}
	return &sealJSON{s.Size, event.FormatTime(s.At), s.Root.String()}
}

func happenedOf(h view.Happened) happenedJSON {
	if h.Last == nil {
		return happenedJSON{Count: h.Count}
	}
	return happenedJSON{h.Count, &eventName{h.Last.Pos, event.FormatTime(h.Last.At), h.Last.Actor}}
}

// verified is v for programs.
func verified(v view.Verification) verifiedJSON {
	return verifiedJSON{v.Since, v.Until, words.TimeOrNull(v.At), v.Running,
		append([]audit.Finding{}, v.Findings...)}
}
