package page

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"jobledger/cmd/jobledger/internal/find"
	"jobledger/cmd/jobledger/internal/web/door"
	"jobledger/ledger/event"
)

// kindChoice is which kinds of events a page shows, for its form: only those that are ticked, or all but
// those.
type kindChoice struct {
	Kinds     []choice
	But       bool
	KindsText string
}

// kindsOf reads the values of the parameter kind.
func kindsOf(words []string) (c kindChoice, err error) {
	kinds, err := find.EventKinds(words)
	if err != nil {
		return c, err
	}
	c.But = len(words) > 0 && !slices.ContainsFunc(words, func(word string) bool { return word[0] != '-' })
	var ticked []string
	for _, k := range event.Kinds() {
		chosen := slices.Contains(kinds, k) != c.But
		c.Kinds = append(c.Kinds, choice{k.String(), chosen})
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

// kindsParam is a parameter of the form of kinds alone: whether what is ticked is shown or left out.
const kindsParam = "kinds"

// sayKinds leads to the address that says by the parameter kind alone what the form says. With always, that
// is there though every kind is shown.
func (p *Pages) sayKinds(w http.ResponseWriter, r *http.Request, query url.Values, always bool) error {
	mode, ticked := query.Get(kindsParam), query["kind"]
	if mode != "only" && mode != "but" || len(query[kindsParam]) > 1 {
		return door.Refusal(http.StatusBadRequest, "usage", kindsParam+" is only or but")
	}
	if _, err := find.EventKinds(ticked); err != nil {
		return err
	}
	query.Del(kindsParam)
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
