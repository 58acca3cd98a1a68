package audit

import (
	"strings"
	"testing"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
	"jobledger/ledger/tree"
)

// An archived event is compared with the events: its range with the one before it, its root with the hash
// tree, whether there are blocks or not, and from wherever verify begins.
func TestVerifyArchived(t *testing.T) {
	t.Parallel()
	body := func(lo, hi int64, root string) *event.Archived {
		return &event.Archived{Lo: lo, Hi: hi, Root: root, SHA256: strings.Repeat("0", 64), Bytes: 1,
			FirstAt: ledgertest.Epoch, LastAt: ledgertest.Epoch}
	}
	wrong := strings.Repeat("A", 43) + "="
	for _, c := range []struct {
		name   string
		bodies func(one, two string) []event.Body
		find   string // in the detail; "": nothing is found
	}{
		{"two", func(one, two string) []event.Body { return []event.Body{body(0, 256, one), body(256, 512, two)} },
			""},
		{"a gap", func(_, two string) []event.Body { return []event.Body{body(256, 512, two)} },
			"events 257 to 512"},
		{"one twice", func(one, _ string) []event.Body {
			return []event.Body{body(0, 256, one), body(0, 256, one)}
		}, "events 1 to 256 were archived, after those up to 256"},
		{"more than there is", func(_, two string) []event.Body { return []event.Body{body(0, 768, two)} },
			"events 1 to 768"},
		{"a wrong root", func(one, _ string) []event.Body {
			return []event.Body{body(0, 256, one), body(256, 512, wrong)}
		}, "names the root " + wrong},
		{"the root of less", func(one, _ string) []event.Body { return []event.Body{body(0, 512, one)} },
			"names the root "},
	} {
		for _, sealed := range []bool{false, true} {
			t.Run(c.name, func(t *testing.T) {
				store := ledgertest.Open(t)
				grow := func(bodies ...event.Body) {
					err := store.Write(t.Context(), func(tx *ledger.Tx) error {
						for _, b := range bodies {
							e := event.Event{Pos: tx.Next(), At: tx.At(), Actor: "cli:ann@host", Body: b}
							if err := tx.Append(t.Context(), e); err != nil {
								return err
							}
						}
						return nil
					})
					if err != nil {
						t.Fatal(err)
					}
				}
				many := make([]event.Body, 600)
				for i := range many {
					many[i] = &event.Rebuilt{}
				}
				grow(many...)
				var one, two string
				read := func(fn func(tx *ledger.Tx) error) {
					if err := store.Read(t.Context(), fn); err != nil {
						t.Fatal(err)
					}
				}
				read(func(tx *ledger.Tx) error {
					events, err := tree.New(t.Context(), tx, nil)
					if err != nil {
						return err
					}
					first, err := events.Root(t.Context(), 256)
					if err != nil {
						return err
					}
					second, err := events.Root(t.Context(), 512)
					one, two = first.String(), second.String()
					return err
				})
				if sealed {
					if _, err := tree.Extend(t.Context(), store, 0, nil); err != nil {
						t.Fatal(err)
					}
				}
				bodies := c.bodies(one, two)
				grow(bodies...)
				last := int64(600 + len(bodies))
				for _, since := range []int64{0, 300, 600, last - 1} {
					var found Verified
					read(func(tx *ledger.Tx) (err error) {
						found, err = VerifySince(t.Context(), tx, since, nil)
						return err
					})
					if since > 256 && !sealed && strings.Contains(c.find, "root") {
						continue // there is nothing to compare it with
					}
					var details []string
					for _, f := range found.Findings {
						details = append(details, f.Code+" "+f.Detail)
					}
					text := strings.Join(details, "\n")
					if c.find == "" && text != "" || !strings.Contains(text, c.find) ||
						c.find != "" && !strings.Contains(text, FindArchived) {
						t.Errorf("sealed %t, since %d: found %q, want %q", sealed, since, text, c.find)
					}
				}
				read(func(tx *ledger.Tx) error { // of the last event alone
					v, err := VerifyWindow(t.Context(), tx, last-1, last, nil)
					if (len(v.Findings) > 0) != (c.find != "" && (sealed || !strings.Contains(c.find, "root"))) {
						t.Errorf("window: found %+v", v.Findings)
					}
					return err
				})
			})
		}
	}
}
