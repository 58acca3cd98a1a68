package page

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"

	"jobledger/cmd/jobledger/internal/web/access"
	"jobledger/cmd/jobledger/internal/web/api"
	"jobledger/cmd/jobledger/internal/web/door"
)

// document is as much of the description of the API as its page shows.
type document struct {
	Info       struct{ Description string }
	Paths      inOrder[inOrder[operation]]
	Components struct {
		Headers   inOrder[answer]
		Responses inOrder[answer]
		Schemas   inOrder[schema]
	}
}

type operation struct {
	Summary, Description string
	Parameters           []parameter
	RequestBody          struct{ Content inOrder[media] }
	Responses            inOrder[answer]
}

type parameter struct {
	Name, In, Description string
	Required              bool
	Schema                schema
}

type media struct {
	Schema  schema
	Example json.RawMessage
}

type answer struct {
	Ref         string `json:"$ref"`
	Description string
	Headers     inOrder[answer]
	Content     inOrder[media]
}

// apiView is what the page of the API shows.
type apiView struct {
	frame
	About    string
	Root     string
	Problem  fieldView
	Sections []apiSection
	Count    int
}

// apiSection are the operations for one purpose.
type apiSection struct {
	ID, Title  string
	Operations []operationView
}

// operationView is one operation. The fields of the first lines are the same on every server.
type operationView struct {
	ID, Method, Path string
	Summary, About   string
	Params           []paramView
	Bodies           []bodyView
	Answers          []answerView
	Streams          bool // an answer is a stream of events

	Scopes []access.Scope // that a token needs
	All    bool           // a token for some queues will not do
	Open   bool           // no credential is needed
	Curl   string
}

type paramView struct {
	Name, In, Type, About string
	Required              bool
}

// bodyView is a body of one media type, of a request or an answer.
type bodyView struct {
	Type    string
	Schema  fieldView
	Example string
}

type answerView struct {
	Status, About string
	Headers       []paramView
	Bodies        []bodyView
	Problem       bool // it is an error, whose fields the page has once
}

// apiDocument is the description of the API, and its operations in the order of the text. It is read at first
// use.
var apiDocument = sync.OnceValues(func() (d *document, operations []operationView) {
	d = new(document)
	if err := json.Unmarshal(api.Document, d); err != nil {
		panic(err) // it is in the program
	}
	for _, path := range d.Paths {
		for _, m := range path.Value {
			operations = append(operations, d.operation(strings.ToUpper(m.Name), path.Name, m.Value))
		}
	}
	return d, operations
})

// anchor is text as an anchor of a page: get-jobs-job.
func anchor(text string) string {
	return strings.Join(strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9')
	}), "-")
}

// operation is o as the page shows it.
func (d *document) operation(method, path string, o operation) operationView {
	v := operationView{ID: anchor(method + strings.TrimPrefix(path, api.Root)), Method: method, Path: path,
		Summary: o.Summary, About: o.Description, Bodies: d.bodies(o.RequestBody.Content)}
	for _, p := range o.Parameters {
		v.Params = append(v.Params, paramView{Name: p.Name, In: p.In, Type: d.field("", p.Schema).Type,
			About: p.Description, Required: p.Required})
	}
	var problems []string
	for _, r := range o.Responses {
		shown := answerView{Status: r.Name, About: r.Value.Description}
		if name, ok := strings.CutPrefix(r.Value.Ref, "#/components/responses/"); ok {
			if problems = append(problems, r.Name); r.Name != "default" {
				continue // the last one is shown for all
			}
			p, _ := d.Components.Responses.get(name)
			statuses := strings.Join(problems[:len(problems)-1], ", ")
			shown.About, shown.Problem = p.Description+" Its status is "+statuses+", or another.", true
		}
		if !shown.Problem {
			shown.Bodies = d.bodies(r.Value.Content)
		}
		for _, h := range r.Value.Headers {
			h.Value, _ = d.Components.Headers.get(h.Name)
			shown.Headers = append(shown.Headers, paramView{Name: h.Name, About: h.Value.Description})
		}
		if _, ok := r.Value.Content.get("text/event-stream"); ok {
			v.Streams = true
		}
		v.Answers = append(v.Answers, shown)
	}
	return v
}

// bodies are those of content, by media type.
func (d *document) bodies(content inOrder[media]) (bodies []bodyView) {
	for _, m := range content {
		bodies = append(bodies, bodyView{m.Name, d.field("", m.Value.Schema), exampleText(m.Value.Example)})
	}
	return bodies
}

// exampleText is an example as it is sent: a string is the text itself.
func exampleText(example json.RawMessage) string {
	var text string
	if len(example) == 0 || json.Unmarshal(example, &text) == nil {
		return text
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, example); err != nil {
		panic(err) // it was read from JSON
	}
	return compact.String()
}

// sectionOf says which operations a section has. The first section that has one shows it.
type sectionOf struct {
	title string
	needs door.Right // any of these
	paths string     // where these begin the path, below the root; "": any
}

func (s sectionOf) has(rt door.Route, path string) bool {
	if s.needs != 0 {
		return rt.Needs&s.needs != 0
	}
	rest, _ := strings.CutPrefix(path, api.Root+"/")
	first, _, _ := strings.Cut(rest, "/")
	return s.paths == "" || slices.Contains(strings.Fields(s.paths), first)
}

// apiSections are all of them. The last has the rest.
var apiSections = []sectionOf{
	{title: "Enqueue jobs", needs: door.Enqueue},
	{title: "Claim jobs and work on them", needs: door.Work},
	{title: "Operate", needs: door.Operate | door.Erase},
	{title: "Look at jobs", paths: "jobs attempts"},
	{title: "Look at queues and workers", paths: "status queues workers"},
	{title: "Read and follow events", paths: "events export"},
	{title: "Find out what happened", paths: "lanes depth series failures moments diff incident"},
	{title: "Check the ledger", paths: "ledger integrity"},
	{title: "Ask about the server"},
}

// apiPage shows the description of the API to people.
func (p *Pages) apiPage(w http.ResponseWriter, r *http.Request) error {
	d, operations := apiDocument()
	shown := apiView{frame: p.emptyFrame(r, "API"), About: d.Info.Description, Root: api.Root,
		Count: len(operations)}
	if caller := door.CallerOf(r.Context()); !caller.Has(door.Read) || !caller.AllQueues() {
		shown.Nav = nil // the other pages are not for this caller
	}
	problem, _ := d.Components.Schemas.get("Problem")
	shown.Problem = d.field("", problem)
	shown.API, shown.Link = api.Root+"/openapi.json", p.Door.Prefix.At("/api")
	shown.Direct = "http://localhost" + p.Door.Prefix.Direct("")
	for _, s := range apiSections {
		shown.Sections = append(shown.Sections, apiSection{ID: "to-" + anchor(s.title), Title: s.title})
	}
	rights := make(map[string]door.Route)
	for _, rt := range p.Door.Routes() {
		rights[rt.Pattern] = rt
	}
	for _, o := range operations {
		rt := rights[o.Method+" "+o.Path]
		o.Scopes, o.Open, o.All = rt.Needs.Scopes(), rt.Needs == door.None, !rt.Queues
		o.Curl = p.curlOf(r, o)
		at := slices.IndexFunc(apiSections, func(s sectionOf) bool { return s.has(rt, o.Path) })
		shown.Sections[at].Operations = append(shown.Sections[at].Operations, o)
	}
	return p.render(w, "api", shown)
}

// curlOf is the command that sends o to this server. What differs from request to request is in variables of
// the shell, as in $JOB.
func (p *Pages) curlOf(r *http.Request, o operationView) string {
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
		words = append(words, "-H "+quoted("Content-Type: "+b.Type), "--data-binary "+quoted(b.Example))
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
