package frame

import (
	"cmp"
	"net/http"
	"strings"

	"jobledger/cmd/jobledger/internal/web/api"
	"jobledger/cmd/jobledger/internal/web/door"
)

// loginView is what the login page shows.
type loginView struct {
	Title string
	Wrong bool // the code was
	Theme string
	Next  string // where it leads; "": to the first page
}

func (p *Site) loginPage(w http.ResponseWriter, r *http.Request) error {
	return p.Render(w, "login", loginView{Title: "Log in", Theme: themeOf(r),
		Next: door.NextOf(r.URL.Query().Get("next"))})
}

// login begins a session for one who has the code of a login link.
func (p *Site) login(w http.ResponseWriter, r *http.Request) error {
	given, err := Form(r)
	if err != nil {
		return err
	}
	ok, err := p.Door.LogIn(w, r, given.Get("code"))
	switch {
	case err != nil:
		return err
	case !ok:
		w.WriteHeader(http.StatusForbidden)
		return p.Render(w, "login", loginView{Title: "Log in", Wrong: true, Theme: themeOf(r),
			Next: door.NextOf(given.Get("next"))})
	}
	p.Door.SeeOther(w, r, cmp.Or(door.NextOf(given.Get("next")), "/"))
	return nil
}

// logout ends the session.
func (p *Site) logout(w http.ResponseWriter, r *http.Request) error {
	p.Door.LogOut(r)
	p.Door.SeeOther(w, r, "/login")
	return nil
}

// newLink prints another login link where the server runs. The browser does not see it.
func (p *Site) newLink(w http.ResponseWriter, r *http.Request) error {
	if !p.Door.PrintLink(r) {
		return door.Refusal(http.StatusTooManyRequests, "rate",
			"the last link can be used still, or there were too many for this address")
	}
	p.Door.SeeOther(w, r, "/login")
	return nil
}

// problemView is what the page of an error shows.
type problemView struct {
	Frame
	Problem  *door.Problem
	Method   string // of the form with the field that is wrong; "": there is none
	Field    string // that can be changed in it: the one that is wrong, or the reason
	Action   string
	Given    []Param // the other fields of it
	Label    string
	Value    string
	Examples []string
}

// examples are times as the fields of pages take them, of the past and to come.
var examples = map[string][]string{"run_at": {"tomorrow 06:00", "fri 2pm", "+10m"},
	"at": {"yesterday 02:00", "tue 2pm", "-2h"}, "from": {"yesterday 02:00", "tue 2pm", "-2h"},
	"to": {"today 02:00", "tue 3pm", "-1h"}}

// addForm adds a form with what was given, in which the field that is wrong can be corrected.
func (v *problemView) addForm(r *http.Request) {
	given, field := r.URL.Query(), v.Problem.Field
	if r.Method == http.MethodPost {
		given = r.PostForm
	}
	later := v.Problem.Status == http.StatusServiceUnavailable || v.Problem.Status == http.StatusUnauthorized
	if field == "" && r.Method == http.MethodPost && later { // the same may be answered otherwise soon
		field = "reason"
	} else if v.Problem.Status != http.StatusBadRequest {
		return
	}
	if field == "" || len(given[field]) > 1 || !given.Has(field) {
		return
	}
	v.Field = field
	v.Method, v.Value, v.Examples = strings.ToLower(r.Method), given.Get(field), examples[field]
	v.Label = strings.ToUpper(field[:1]) + strings.ReplaceAll(field[1:], "_", " ")
	for _, name := range api.SortedNames(given) {
		for _, value := range given[name] {
			if name != field {
				v.Given = append(v.Given, Param{name, value})
			}
		}
	}
}

// ShowProblem answers with problem as a page.
func (p *Site) ShowProblem(w http.ResponseWriter, r *http.Request, problem *door.Problem) error {
	shown := problemView{Problem: problem}
	shown.addForm(r)
	p, r, _ = p.inZone(r)      // a zone that is wrong is the problem
	if problem.Field == "at" { // the other pages are not about that
		address := *r.URL
		address.RawQuery = ""
		r = r.WithContext(r.Context())
		r.URL = &address
	}
	shown.Frame = p.EmptyFrame(r, http.StatusText(problem.Status))
	if problem.Status == http.StatusUnauthorized { // nothing is said of the ledger
		shown.Nav = nil
	}
	if shown.Action = shown.Path; r.Method == http.MethodPost {
		shown.Action = r.URL.RequestURI()
	}
	return p.Render(w, "problem", shown)
}
