package frame

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"jobledger/cmd/jobledger/internal/find"
	"jobledger/cmd/jobledger/internal/web/door"
	"jobledger/ledger/event"
)

// KindChoice is which kinds of events a page shows, for its form: only those that are ticked, or all but
// those.
type KindChoice struct {
	Kinds     []Choice
	But       bool
	KindsText string
}

// KindsOf reads the values of the parameter kind.
func KindsOf(words []string) (c KindChoice, err error) {
	kinds, err := find.EventKinds(words)
	if err != nil {
		return c, err
	}
	c.But = len(words) > 0 && !slices.ContainsFunc(words, func(word string) bool { return word[0] != '-' })
	var ticked []string
	for _, k := range event.Kinds() {
		chosen := slices.Contains(kinds, k) != c.But
		c.Kinds = append(c.Kinds, Choice{k.String(), chosen})
		if chosen {
			ticked = append(ticked, k.String())
		}
	}
	switch {
	case len(words) == 0:
		c.KindsText = "all"
	case c.But:
		c.KindsText = "all but " + strings.Join(ticked, ", ")
	default:
		c.KindsText = strings.Join(ticked, ", ")
	}
	return c, nil
}

// KindsParam is a parameter of the form of kinds only: whether the ticked kinds are shown or left out.
const KindsParam = "kinds"

// SayKinds leads to the address that says by the parameter kind alone what the form says. With always, it is
// there even if every kind is shown.
func (p *Site) SayKinds(w http.ResponseWriter, r *http.Request, query url.Values, always bool) error {
	mode, ticked := query.Get(KindsParam), query["kind"]
	if mode != "only" && mode != "but" || len(query[KindsParam]) > 1 {
		return door.Refusal(http.StatusBadRequest, "usage", KindsParam+" is only or but")
	}
	if _, err := find.EventKinds(ticked); err != nil {
		return err
	}
	query.Del(KindsParam)
	if mode == "but" {
		query.Del("kind")
		for _, name := range ticked {
			query.Add("kind", "-"+strings.TrimPrefix(name, "-"))
		}
	}
	if always && len(ticked) == 0 {
		query.Set("kind", "")
	}
	address := r.URL.Path
	if len(query) > 0 {
		address += "?" + query.Encode()
	}
	p.Door.SeeOther(w, r, address)
	return nil
}

// Choice is one value of a field of a form.
type Choice struct {
	Value  string
	Chosen bool
}
