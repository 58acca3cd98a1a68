package page

import (
	"net/http"
	"slices"
	"strings"

	"jobledger/cmd/jobledger/internal/web/api"
	"jobledger/cmd/jobledger/internal/web/apidoc"
	"jobledger/cmd/jobledger/internal/web/door"
	"jobledger/cmd/jobledger/internal/web/frame"
)

// apiView is what the page of the API shows.
type apiView struct {
	frame.Frame
	About    string
	Root     string
	Problem  apidoc.Field
	Sections []apiSection
	Count    int
}

// apiSection are the operations for one purpose.
type apiSection struct {
	ID, Title  string
	Operations []apidoc.Operation
}

// apiPage shows the description of the API to people.
func (p *Pages) apiPage(w http.ResponseWriter, r *http.Request) error {
	d, operations := apidoc.Read()
	shown := apiView{Frame: p.EmptyFrame(r, "API"), About: d.About(), Root: api.Root,
		Count: len(operations)}
	if caller := door.CallerOf(r.Context()); !caller.Has(door.Read) || !caller.AllQueues() {
		shown.Nav = nil // the other pages are not for this caller
	}
	shown.Problem = d.Problem()
	shown.API, shown.Link = api.Root+"/openapi.json", p.Door.Prefix.At("/api")
	shown.Direct = "http://localhost" + p.Door.Prefix.Direct("")
	for _, s := range apidoc.Sections {
		shown.Sections = append(shown.Sections, apiSection{ID: "to-" + apidoc.Anchor(s.Title), Title: s.Title})
	}
	rights := make(map[string]door.Route)
	for _, rt := range p.Door.Routes() {
		rights[rt.Pattern] = rt
	}
	for _, o := range operations {
		rt := rights[o.Method+" "+o.Path]
		o.Scopes, o.Open, o.All = rt.Needs.Scopes(), rt.Needs == door.None, !rt.Queues
		o.Curl = p.curlOf(r, o)
		at := slices.IndexFunc(apidoc.Sections, func(s apidoc.Section) bool { return s.Has(rt, o.Path) })
		shown.Sections[at].Operations = append(shown.Sections[at].Operations, o)
	}
	return p.Render(w, "api", shown)
}

// curlOf is the command that sends o to this server. Values that differ from request to request are shell
// variables, such as $JOB.
func (p *Pages) curlOf(r *http.Request, o apidoc.Operation) string {
	words := []string{"curl"}
	if o.Streams {
		words = append(words, "-N") // each event as it comes
	}
	if o.Method != http.MethodGet {
		words = append(words, "-X", o.Method)
	}
	switch {
	case p.Door.OnSocket(): // the system says who asks
		words = append(words, `--unix-socket "$SOCKET"`)
	case !o.Open:
		words = append(words, `-H "Authorization: Bearer $TOKEN"`)
	}
	path, query := o.Path, ""
	for _, param := range o.Params {
		variable := shellVariable(param.Name)
		switch {
		case param.In == "path":
			path = strings.ReplaceAll(path, "{"+param.Name+"}", variable)
		case param.Required && param.In == "query":
			query += "&" + param.Name + "=" + variable
		}
	}
	if len(o.Bodies) > 0 {
		b := o.Bodies[0]
		words = append(words, "-H "+frame.Quoted("Content-Type: "+b.Type), "--data-binary "+frame.Quoted(b.Example))
	}
	if query != "" {
		query = "?" + query[1:]
	}
	address := p.Door.OriginOf(r) + p.Door.Prefix.At(path) + query
	return strings.Join(append(words, `"`+address+`"`), " ")
}

// shellVariable is the variable for a parameter.
func shellVariable(name string) string {
	if name == "token" { // $TOKEN is that of the caller
		return "$CLAIM_TOKEN"
	}
	return "$" + strings.ToUpper(name)
}
