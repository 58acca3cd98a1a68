package apidoc

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"jobledger/cmd/jobledger/internal/web/access"
	"jobledger/cmd/jobledger/internal/web/api"
	"jobledger/cmd/jobledger/internal/web/door"
)

// Document is the part of the description of the API that its page shows.
type Document struct {
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

// Operation is one operation. The fields of the first lines are the same on every server.
type Operation struct {
	ID, Method, Path string
	Summary, About   string
	Params           []Param
	Bodies           []Body
	Answers          []Answer
	Streams          bool // an answer is a stream of events

	Scopes []access.Scope // that a token needs
	All    bool           // a token for some queues will not do
	Open   bool           // no credential is needed
	Curl   string
}

// Param is a parameter, or a header.
type Param struct {
	Name, In, Type, About string
	Required              bool
}

// Body is a body of one media type, of a request or an answer.
type Body struct {
	Type    string
	Schema  Field
	Example string
}

// Answer is an answer of an operation.
type Answer struct {
	Status, About string
	Headers       []Param
	Bodies        []Body
	Problem       bool // it is an error, whose fields the page has once
}

// Read returns the description of the API, and its operations in the order of the text. It is read at first
// use.
var Read = sync.OnceValues(func() (d *Document, operations []Operation) {
	d = new(Document)
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

// Anchor is text as an anchor of a page: get-jobs-job.
func Anchor(text string) string {
	return strings.Join(strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9')
	}), "-")
}

// About is the introduction of the API's description.
func (d *Document) About() string { return d.Info.Description }

// Problem is what an error says.
func (d *Document) Problem() Field {
	problem, _ := d.Components.Schemas.get("Problem")
	return d.field("", problem)
}

// operation is o as the page shows it.
func (d *Document) operation(method, path string, o operation) Operation {
	v := Operation{ID: Anchor(method + strings.TrimPrefix(path, api.Root)), Method: method, Path: path,
		Summary: o.Summary, About: o.Description, Bodies: d.bodies(o.RequestBody.Content)}
	for _, p := range o.Parameters {
		v.Params = append(v.Params, Param{Name: p.Name, In: p.In, Type: d.field("", p.Schema).Type,
			About: p.Description, Required: p.Required})
	}
	var problems []string
	for _, r := range o.Responses {
		shown := Answer{Status: r.Name, About: r.Value.Description}
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
			shown.Headers = append(shown.Headers, Param{Name: h.Name, About: h.Value.Description})
		}
		if _, ok := r.Value.Content.get("text/event-stream"); ok {
			v.Streams = true
		}
		v.Answers = append(v.Answers, shown)
	}
	return v
}

// bodies are those of content, by media type.
func (d *Document) bodies(content inOrder[media]) (bodies []Body) {
	for _, m := range content {
		bodies = append(bodies, Body{m.Name, d.field("", m.Value.Schema), exampleText(m.Value.Example)})
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

// Section says which operations a section of the page has. The first section that has one shows it.
type Section struct {
	Title string
	needs door.Right // any of these
	paths string     // where these begin the path, below the root; "": any
}

// Has reports whether the section has the operation at path, which rt answers.
func (s Section) Has(rt door.Route, path string) bool {
	if s.needs != 0 {
		return rt.Needs&s.needs != 0
	}
	rest, _ := strings.CutPrefix(path, api.Root+"/")
	first, _, _ := strings.Cut(rest, "/")
	return s.paths == "" || slices.Contains(strings.Fields(s.paths), first)
}

// Sections are all of them. The last has the rest.
var Sections = []Section{
	{Title: "Enqueue jobs", needs: door.Enqueue},
	{Title: "Claim jobs and work on them", needs: door.Work},
	{Title: "Operate", needs: door.Operate | door.Erase},
	{Title: "Look at jobs", paths: "jobs attempts"},
	{Title: "Look at queues and workers", paths: "status queues workers"},
	{Title: "Read and follow events", paths: "events export"},
	{Title: "Find out what happened", paths: "lanes depth series failures moments diff incident"},
	{Title: "Check the ledger", paths: "ledger integrity"},
	{Title: "Ask about the server"},
}
