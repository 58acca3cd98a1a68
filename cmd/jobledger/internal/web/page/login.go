package page

import (
	"net/http"

	"jobledger/cmd/jobledger/internal/web/door"
)

// loginView is what the login page shows.
type loginView struct {
	Title string
	Wrong bool // the code was
}

func (p *Pages) loginPage(w http.ResponseWriter, _ *http.Request) error {
	return p.render(w, "login", loginView{Title: "Log in"})
}

// login begins a session for one who has the code of a login link.
func (p *Pages) login(w http.ResponseWriter, r *http.Request) error {
	given, err := form(r)
	if err != nil {
		return err
	}
	ok, err := p.Door.LogIn(w, r, given.Get("code"))
	switch {
	case err != nil:
		return err
	case !ok:
		w.WriteHeader(http.StatusForbidden)
		return p.render(w, "login", loginView{Title: "Log in", Wrong: true})
	}
	p.Door.SeeOther(w, r, "/")
	return nil
}

// logout ends the session.
func (p *Pages) logout(w http.ResponseWriter, r *http.Request) error {
	p.Door.LogOut(r)
	p.Door.SeeOther(w, r, "/login")
	return nil
}

// newLink prints another login link where the server runs. The browser does not see it.
func (p *Pages) newLink(w http.ResponseWriter, r *http.Request) error {
	if !p.Door.PrintLink(r) {
		return door.Refusal(http.StatusTooManyRequests, "rate",
			"the last link can be used still, or there were too many for this address")
	}
	p.Door.SeeOther(w, r, "/login")
	return nil
}

// problemView is what the page of an error shows.
type problemView struct {
	frame
	Problem *door.Problem
}

// ShowProblem answers with problem as a page.
func (p *Pages) ShowProblem(w http.ResponseWriter, r *http.Request, problem *door.Problem) error {
	p, r, _ = p.inZone(r) // a zone that is wrong is the problem
	return p.render(w, "problem", problemView{frame: p.emptyFrame(r, http.StatusText(problem.Status)),
		Problem: problem})
}
