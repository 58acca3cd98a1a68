package web

import (
	"bytes"
	"cmp"
	"encoding/json"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"jobledger/cmd/jobledger/internal/doctor"
	"jobledger/cmd/jobledger/internal/print"
	"jobledger/cmd/jobledger/internal/state"
	"jobledger/cmd/jobledger/internal/web/act"
	"jobledger/cmd/jobledger/internal/web/api"
	"jobledger/cmd/jobledger/internal/web/door"
	"jobledger/commands"
	"jobledger/commands/remote/wire"
	"jobledger/ledger/event"
	"jobledger/projection/status"
)

var update = flag.Bool("update", false, "write the description of the API")

// The description of the API is what its routes say, and the types of their bodies and answers.
func TestDocumentIsThatOfTheRoutes(t *testing.T) {
	d := describer{t: t, types: make(map[string]reflect.Type), texts: make(map[string]string)}
	text := d.document(New(Config{}).door.Routes())
	file := filepath.Join("api", "openapi.json")
	if *update {
		if err := os.WriteFile(file, text, 0o644); err != nil { //#nosec G306 -- it is a file of the repository
			t.Fatal(err)
		}
		return
	}
	if !bytes.Equal(text, api.Document) {
		t.Errorf("%s is not what the routes say: run this test with -update, and look at the difference", file)
	}
}

// eventJSON is an [event.Event], which writes its JSON itself.
type eventJSON struct {
	Pos     int64          `json:"pos"`
	Job     *event.JobID   `json:"job"`
	Seq     *int64         `json:"seq"`
	Kind    string         `json:"kind"`
	At      time.Time      `json:"at"`
	Actor   string         `json:"actor"`
	Worker  *string        `json:"worker"`
	Token   *string        `json:"token"`
	Attempt *int           `json:"attempt"`
	From    *string        `json:"from_state"`
	To      *string        `json:"to_state"`
	Data    map[string]any `json:"data"` // what an event of this kind says, as the page of the kinds has it
}

// exportLine is an [event.Line], likewise.
type exportLine struct {
	eventJSON
	Payload       string `json:"payload,omitempty"`
	PayloadBase64 string `json:"payload_base64,omitempty"`
	Result        string `json:"result,omitempty"`
	ResultBase64  string `json:"result_base64,omitempty"`
	Salt          string `json:"salt,omitempty"` // in hex, of the digest of the payload or the result
}

// newJob is a [commands.Enqueue] as a line of JSON has it, which package joblines reads field by field.
type newJob struct {
	Queue string `json:"queue"`
	Key   string `json:"key,omitempty"` // a job of the queue has it once
	// of which so many run at the same time as its limit says
	Group string `json:"group,omitempty"`
	// not before this time: RFC 3339, or in so long, as +10m
	RunAt      string `json:"run_at,omitempty"`
	Delay      string `json:"delay,omitempty"`       // not before so long from now, as 90s
	MaxRuntime string `json:"max_runtime,omitempty"` // how long an attempt may take, as 90s
	// how long it waits after failures, as 1s..1h or 1s..1h x3
	Backoff string `json:"backoff,omitempty"`
	Version string `json:"version,omitempty"` // only workers of this version take it
	// a name that later lines of the same request may have in after
	Ref         string `json:"ref,omitempty"`
	UniqueWhile string `json:"unique_while,omitempty"` // how long its key is its own
	// what becomes of a job with its key that is there already
	OnDuplicate   string `json:"on_duplicate,omitempty"`
	ID            string `json:"id,omitempty"` // a ULID in capitals, which the client makes
	PayloadBase64 string `json:"payload_base64,omitempty"`
	// a string is taken for what it says, other JSON for its exact text
	Payload any               `json:"payload,omitempty"`
	Tags    map[string]string `json:"tags,omitempty"`
	// the highest of the ready ones is claimed first
	Priority    int      `json:"priority,omitempty"`
	MaxAttempts int      `json:"max_attempts,omitempty"` // how often it may fail
	Requires    []string `json:"requires,omitempty"`     // labels that a worker must have
	// jobs that must end before it, as ID or ID:OUTCOME
	After  []string `json:"after,omitempty"`
	Before []string `json:"before,omitempty"` // jobs that wait for it
	Hold   bool     `json:"hold,omitempty"`   // it is blocked until it is released
	Tag    []string `json:"-"`
}

// described are the types that stand for others in the document.
var described = map[reflect.Type]reflect.Type{
	reflect.TypeFor[event.Event]():      reflect.TypeFor[eventJSON](),
	reflect.TypeFor[event.Line]():       reflect.TypeFor[exportLine](),
	reflect.TypeFor[commands.Enqueue](): reflect.TypeFor[newJob](),
	reflect.TypeFor[json.Marshaler]():   reflect.TypeFor[map[string]any](),
}

// named are the schemas that have another name than their type.
var named = map[reflect.Type]string{
	reflect.TypeFor[print.StatusThenJSON](): "Status", reflect.TypeFor[print.QueueThenJSON](): "Queue",
	reflect.TypeFor[print.ListedJobJSON](): "Job", reflect.TypeFor[print.WholeJobJSON](): "FullJob",
	reflect.TypeFor[print.WhyThenJSON](): "Why", reflect.TypeFor[state.LostClaim](): "LostClaim",
	reflect.TypeFor[wire.Job](): "Acted", reflect.TypeFor[wire.Claims](): "Turn",
	reflect.TypeFor[wire.Minimal](): "MinimalJob", reflect.TypeFor[wire.Worker](): "StartedWorker",
	reflect.TypeFor[doctor.Finding](): "DoctorFinding", reflect.TypeFor[act.Tally](): "Acts",
	reflect.TypeFor[status.Activity](): "LastHour",
}

// problems are what problems of a status are about.
var problems = map[int]string{
	400: "A part of the request is not as it must be; field and errors say which.",
	401: "There is no valid credential.",
	403: "The credential is not for this, or not for this queue; or a page of another origin asks.",
	404: "There is no such thing, or not any more, or the credential is not for its queue.",
	406: "The answer has none of the media types of Accept.",
	408: "The body did not arrive in time.",
	409: "It contradicts what is recorded; where the answer has a job, that is as it is.",
	410: "The lease is lost: the claim is not the caller's any more.",
	412: "The job has moved on since it was seen; the answer has it as it is.",
	413: "The body or the answer is too large.",
	415: "The body is of another media type.",
	421: "The server is not the host of the request.",
	422: "The key was given by Idempotency-Key, and another job has it.",
	429: "The token asks too often, or too much at the same time; Retry-After says when to ask again.",
	503: "It cannot be answered now; Retry-After says when to ask again.",
}

// headers are those of answers.
var headers = map[string]string{
	"Jobledger-Pos":   "A position of which the answer has everything.",
	"Jobledger-Left":  "How many jobs that have left the ledger the answer lacks.",
	"Jobledger-After": "How many bytes there are: what comes later is after these.",
	"ETag":            "The tag of the content, for If-None-Match.",
}

// object is an object of JSON whose members keep their order.
type object []member

type member struct {
	name  string
	value any
}

// MarshalJSON writes the members in their order.
func (o object) MarshalJSON() ([]byte, error) {
	b := []byte("{")
	for i, m := range o {
		value, err := unescaped(m.value)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(strconv.AppendQuote(b, m.name), ':'), value...)
	}
	return append(b, '}'), nil
}

// unescaped is v as JSON, in which < is itself.
func unescaped(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSpace(b.Bytes()), err
}

// with is o and another member, unless that is empty.
func (o object) with(name string, value any) object {
	if v := reflect.ValueOf(value); !v.IsValid() || v.IsZero() || v.Kind() == reflect.Slice && v.Len() == 0 {
		return o
	}
	return append(o, member{name, value})
}

// a is the schema of a type, or of values with a format.
func a(kind string, format ...string) object {
	return object{{"type", kind}}.with("format", strings.Join(format, ""))
}

func ref(kind, name string) object { return object{{"$ref", "#/components/" + kind + "/" + name}} }

// describer makes the description of the API.
type describer struct {
	t       *testing.T
	schemas object
	types   map[string]reflect.Type // of the schemas
	texts   map[string]string       // of fields, as jobledger/commands/remote/wire.Job.CannotEnd
	refused map[int]bool            // problems that an operation has
}

func (d *describer) document(routes []door.Route) []byte {
	var paths object
	var statuses []int
	d.refused = make(map[int]bool)
	for _, rt := range routes {
		method, path, _ := strings.Cut(rt.Pattern, " ")
		if rt.Doc.ID == "" {
			if strings.HasPrefix(path, api.Root) {
				d.t.Errorf("%s does not say what it is", rt.Pattern)
			}
			continue
		}
		operation := member{strings.ToLower(method), d.operation(method, path, rt)}
		if i := slices.IndexFunc(paths, func(m member) bool { return m.name == path }); i >= 0 {
			paths[i].value = append(paths[i].value.(object), operation)
		} else {
			paths = append(paths, member{path, object{operation}})
		}
	}
	d.schema(reflect.TypeFor[wire.Problem](), false)
	statuses = slices.Sorted(maps.Keys(d.refused))
	problem := object{{"application/problem+json", object{{"schema", ref("schemas", "Problem")}}}}
	responses := object{{"Problem", object{{"description", "An error, with the exit code of the command."},
		{"content", problem}}}}
	for _, status := range statuses {
		responses = append(responses, member{responseName(status), object{{"description", problems[status]},
			{"content", problem}}})
	}
	var answered object
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		kind := "integer"
		if name == "ETag" {
			kind = "string"
		}
		answered = append(answered, member{name, object{{"description", headers[name]}, {"schema", a(kind)}}})
	}
	any3 := []object{{{"session", []string{}}}, {{"token", []string{}}}, {{"certificate", []string{}}}}
	text, err := unescaped(object{{"openapi", "3.1.0"}, {"info", object{{"title", "jobledger"}, {"version", "1"},
		{"license", object{{"name", "MIT"}, {"identifier", "MIT"}}},
		{"description", "What jobledger serve answers. Answers gain fields, and lose none: ignore those you do " +
			"not " +
			"know. What has left the ledger for an archive that the server knows is read from there, without " +
			"payloads; " +
			"the answer is 503 while that is not done."}}},
		{"servers", []object{{{"url", "/"}}}}, {"security", any3}, {"paths", paths},
		{"components", object{{"headers", answered}, {"responses", responses}, {"schemas", d.schemas},
			{"securitySchemes", object{
				{"session", object{{"type", "apiKey"}, {"in", "cookie"}, {"name", "jobledger-PORT"}, {"description",
					"The cookie of a session, which a login link begins. On a Unix socket the user of the peer is " +
						"enough."}}},
				{"token", object{{"type", "http"}, {"scheme", "bearer"}, {"description",
					"A token that jobledger token create made, for its scopes and queues."}}},
				{"certificate", object{{"type", "mutualTLS"}, {"description", "A certificate that --client-ca signed, " +
					"for the scopes and queues of the token that its common name is."}}}}}}}})
	if err != nil {
		d.t.Fatal(err)
	}
	var b bytes.Buffer
	if err := json.Indent(&b, text, "", " "); err != nil {
		d.t.Fatal(err)
	}
	return append(b.Bytes(), '\n')
}

// responseName is the name of the answers with a problem of a status.
func responseName(status int) string {
	return strings.NewReplacer(" ", "", "-", "").Replace(http.StatusText(status))
}

// refuses are the statuses of the problems that the answer to rt may be.
func refuses(method, path string, rt door.Route) []int {
	all := slices.Clone(rt.Doc.Refuses)
	all = append(all, 403, 421)
	if rt.Needs != door.None {
		all = append(all, 400, 401, 406, 429)
	}
	if strings.Contains(path, "{") || len(rt.Doc.Query) > 0 || rt.Needs == door.Enqueue {
		all = append(all, 404) // also what has left the ledger
	}
	if rt.MaxBody > 0 {
		all = append(all, 408, 413, 415)
	}
	all = append(all, 503)
	slices.Sort(all)
	return slices.Compact(all)
}

func (d *describer) operation(method, path string, rt door.Route) object {
	doc := rt.Doc
	var params []object
	for _, part := range regexp.MustCompile(`{\w+}`).FindAllString(path, -1) {
		params = append(params, d.param(doc.ID, part, "path"))
	}
	for _, name := range doc.Query {
		params = append(params, d.param(doc.ID, name, "query"))
	}
	for _, name := range doc.Headers {
		params = append(params, d.param(doc.ID, name, "header"))
	}
	o := object{{"operationId", doc.ID}, {"tags", []string{tagOf(path, rt)}}, {"summary", doc.Summary}}.
		with("description", doc.About)
	switch {
	case rt.Needs == door.None:
		o = append(o, member{"security", []object{}})
	case rt.Needs&(door.Enqueue|door.Work) != 0: // no session has these
		o = append(o, member{"security", []object{{{"token", []string{}}}, {{"certificate", []string{}}}}})
	}
	o = o.with("parameters", params)
	if doc.Example != "" {
		o = append(o, member{"requestBody", d.body(doc)})
	}
	var responses object
	if doc.Says == nil {
		doc.Says = map[int]string{200: doc.Summary}
	}
	for _, status := range slices.Sorted(maps.Keys(doc.Says)) {
		answer := object{{"description", doc.Says[status]}}
		gives := slices.Clone(doc.Gives)
		if doc.Answer != nil && rt.Types == nil {
			gives = append(gives, "Jobledger-Pos")
			if method == http.MethodGet && rt.Needs&door.Work == 0 {
				gives = append(gives, "ETag")
			}
		}
		var with object
		for _, name := range gives {
			with = append(with, member{name, ref("headers", name)})
		}
		answer = answer.with("headers", with)
		if status != http.StatusNoContent {
			answer = append(answer, member{"content", d.content(method, doc, rt.Types)})
		}
		responses = append(responses, member{strconv.Itoa(status), answer})
		if method == http.MethodGet && rt.Needs&(door.Work|door.Metrics) == 0 && rt.Needs != 0 && !rt.Streams {
			responses = append(responses, member{"304", object{{"description", "It is as If-None-Match has it."}}})
		}
	}
	for _, status := range refuses(method, path, rt) {
		d.refused[status] = true
		responses = append(responses, member{strconv.Itoa(status), ref("responses", responseName(status))})
	}
	return append(o, member{"responses", append(responses, member{"default", ref("responses", "Problem")})})
}

// tagOf is what an operation is for.
func tagOf(path string, rt door.Route) string {
	switch {
	case rt.Needs&(door.Operate|door.Erase) != 0:
		return "operate"
	case rt.Needs&door.Work != 0:
		return "work"
	case rt.Needs&door.Enqueue != 0, strings.HasPrefix(path, api.Root+"/jobs"):
		return "jobs"
	case !strings.HasPrefix(path, api.Root), strings.HasSuffix(path, "openapi.json"):
		return "server"
	}
	return "history"
}

// param is a parameter of an operation, or a header of its request.
func (d *describer) param(id, name, in string) object {
	p, ok := door.Params[id+"."+name]
	if !ok {
		p, ok = door.Params[name]
	}
	schema := any(a("string"))
	job := reflect.TypeFor[newJob]()
	f, of := job.FieldByNameFunc(func(n string) bool { return jsonName(n) == name })
	if of && id == "enqueuePayload" && in == "query" {
		p.About, ok = d.text(job, f), true
		schema = d.schema(f.Type, true)
	}
	if !ok {
		d.t.Errorf("the parameter %s of %s is not in door.Params", name, id)
	}
	if p.Schema != "" {
		schema = json.RawMessage(p.Schema)
	}
	o := object{{"name", strings.Trim(name, "{}")}, {"in", in}}
	if in == "path" || p.Needed {
		o = append(o, member{"required", true})
	}
	return append(o.with("description", p.About), member{"schema", schema})
}

// jsonName is the name that a field of [newJob] has in JSON.
func jsonName(field string) string {
	f, _ := reflect.TypeFor[newJob]().FieldByName(field)
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	if field == "Tag" {
		name = "tag"
	}
	return name
}

func (d *describer) body(doc door.Doc) object {
	var content object
	if doc.Body == nil {
		content = object{{"application/octet-stream", object{{"schema", object{}}, {"example", doc.Example}}}}
	} else {
		body := object{{"schema", d.schema(reflect.TypeOf(doc.Body), true)},
			{"example", json.RawMessage(doc.Example)}}
		content = object{{"application/json", body}}
		if doc.Line != "" {
			content = append(content, member{"application/x-ndjson",
				object{body[0], {"example", json.RawMessage(doc.Line)}}})
		}
	}
	return object{}.with("required", !doc.Maybe).with("content", content)
}

func (d *describer) content(method string, doc door.Doc, types []string) (content object) {
	if types = append(types, doc.Types...); len(types) == 0 {
		types = []string{"application/json"}
		if method == http.MethodGet { // a list as lines, and an object as one
			types = append(types, "application/x-ndjson")
		}
	}
	var answer any
	if all, ok := doc.Answer.([]any); ok {
		var kinds []any
		for _, one := range all {
			kinds = append(kinds, d.schema(reflect.TypeOf(one), false))
		}
		answer = object{{"anyOf", kinds}}
	} else if doc.Answer != nil {
		answer = d.schema(reflect.TypeOf(doc.Answer), false)
	}
	for _, kind := range types {
		var schema any = a("string", "binary")
		switch {
		case strings.HasPrefix(kind, "text/"), strings.HasSuffix(kind, "-text"):
			schema = a("string")
		case kind == "application/json" && doc.List:
			schema = d.page(reflect.TypeOf(doc.Answer), answer)
		case kind == "application/json" && (answer == nil || slices.Contains(types, "text/csv")):
			schema = a("object")
		case strings.HasSuffix(kind, "json"):
			schema = answer
		}
		content = append(content, member{kind, object{{"schema", schema}}})
	}
	return content
}

// page is the schema of a page of items of a type.
func (d *describer) page(t reflect.Type, item any) object {
	name := strings.TrimPrefix(item.(object)[0].value.(string), "#/components/schemas/") + "Page"
	if _, ok := d.types[name]; !ok {
		d.types[name] = t
		o := d.fields(reflect.TypeFor[api.Page](), false)
		o.required = append([]string{"items"}, o.required...)
		o.properties = append(object{{"items", object{{"type", "array"}, {"items", item}}}}, o.properties...)
		d.schemas = append(d.schemas, member{name, o.schema()})
	}
	return ref("schemas", name)
}

// fold are the fields of a struct, as they are folded from those that it embeds.
type fold struct {
	base       object // what it has besides: the fields of a job
	properties object
	required   []string
	request    bool
}

func (f fold) schema() object {
	o := a("object").with("required", f.required)
	if f.base != nil {
		return append(o, member{"allOf", []object{f.base, a("object").with("properties", f.properties)}})
	}
	if o = o.with("properties", f.properties); f.request {
		o = append(o, member{"additionalProperties", false})
	}
	return o
}

// rules are what the tag openapi of a field says, such as format=date-time;required=a,b.
func rules(f reflect.StructField) map[string]string {
	all := make(map[string]string)
	for rule := range strings.SplitSeq(f.Tag.Get("openapi"), ";") {
		name, value, _ := strings.Cut(rule, "=")
		all[name] = value
	}
	return all
}

// fields folds those of a struct.
func (d *describer) fields(t reflect.Type, request bool) (all fold) {
	all.request = request
	var optional, required string
	for i := range t.NumField() {
		f := t.Field(i)
		of := rules(f)
		optional, required = cmp.Or(optional, of["optional"]), cmp.Or(required, of["required"])
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && name == "" {
			d.embed(&all, f)
		} else if name != "" && name != "-" && f.IsExported() {
			all.properties = append(all.properties, member{name, d.field(t, f, name, options, of, request)})
			if !strings.Contains(options, "omit") {
				all.required = append(all.required, name)
			}
		}
	}
	all.required = slices.DeleteFunc(all.required, func(name string) bool {
		return optional == "*" || slices.Contains(strings.Split(optional, ","), name)
	})
	all.required = append(all.required, strings.FieldsFunc(required, func(r rune) bool { return r == ',' })...)
	return all
}

// embed adds the fields of f, which is embedded; those of a job are a schema of their own.
func (d *describer) embed(all *fold, f reflect.StructField) {
	t := f.Type
	if t.Kind() == reflect.Pointer { // it may be nil
		t = t.Elem()
	}
	minimal := t.Name() == "minimalJob"
	if minimal {
		t = reflect.TypeFor[wire.Job]()
	}
	inner := d.fields(t, all.request)
	if t == reflect.TypeFor[wire.Job]() {
		inner = d.jobFields(inner)
	}
	if inner.base != nil {
		all.base = inner.base
	}
	all.properties = append(all.properties, inner.properties...)
	if f.Type.Kind() != reflect.Pointer && !minimal {
		all.required = append(all.required, inner.required...)
	}
}

// jobFields is a job whose fields are those of a schema that requires none of them.
func (d *describer) jobFields(job fold) fold {
	const name = "JobFields"
	if _, ok := d.types[name]; !ok {
		d.types[name] = reflect.TypeFor[wire.Job]()
		d.schemas = append(d.schemas, member{name, fold{properties: job.properties}.schema()})
	}
	return fold{base: ref("schemas", name), required: job.required}
}

// timeName are the names of times in answers, which are texts.
var timeName = regexp.MustCompile(
	`^(at|since|until|first|last|as_of|tick|end_by|oldest_expired_lease|.*_(at|since|until))$`)

func (d *describer) field(t reflect.Type, f reflect.StructField, name, options string, of map[string]string,
	request bool) any {
	inner, pointers := f.Type, 0
	for ; inner.Kind() == reflect.Pointer; inner = inner.Elem() {
		pointers++
	}
	o := d.schema(inner, request)
	if inner.Kind() == reflect.String && !request && timeName.MatchString(name) {
		of["format"] = "date-time"
	}
	_, null := of["null"]
	null = null || pointers > 0 && (!strings.Contains(options, "omit") || pointers > 1)
	o = o.with("format", of["format"])
	if of["enum"] != "" {
		var values []any
		for value := range strings.SplitSeq(of["enum"], ",") {
			values = append(values, value)
		}
		if null {
			values = append(values, nil)
		}
		o = append(o, member{"enum", values})
	}
	for _, rule := range []string{"maximum", "maxItems"} {
		o = o.with(rule, json.RawMessage(of[rule]))
	}
	if null {
		o = orNull(o)
	}
	return o.with("description", d.text(t, f))
}

// orNull is the schema of what o describes, or null.
func orNull(o object) object {
	o = slices.Clone(o)
	if len(o) == 0 {
		return o
	}
	switch kind := o[0]; kind.name {
	case "type":
		o[0].value = []any{kind.value, "null"}
	case "anyOf":
		o[0].value = append(slices.Clone(kind.value.([]any)), a("null"))
	default:
		return object{{"oneOf", []any{o, a("null")}}}
	}
	return o
}

// schema is the schema of the values of a type.
func (d *describer) schema(t reflect.Type, request bool) object {
	if other, ok := described[t]; ok {
		t = other
	}
	switch t {
	case reflect.TypeFor[time.Time]():
		return a("string", "date-time")
	case reflect.TypeFor[json.RawMessage](): // any value
		return object{}
	case reflect.TypeFor[event.JobID]():
		return a("string").with("pattern", "^[0-7][0-9A-HJKMNP-TV-Z]{25}$")
	}
	switch t.Kind() {
	case reflect.Pointer:
		return orNull(d.schema(t.Elem(), request))
	case reflect.Struct:
		return d.component(t, request)
	case reflect.Interface:
		if strings.HasPrefix(t.Name(), "either[") { // its whole form is the answer of another route
			minimal := d.schema(reflect.TypeFor[wire.Minimal](), false)
			return object{{"anyOf", []any{ref("schemas", schemaName(t.Name())), minimal}}}
		}
		return object{}
	case reflect.Map:
		return append(a("object"), member{"additionalProperties", d.schema(t.Elem(), request)})
	case reflect.Slice:
		return append(a("array"), member{"items", d.schema(t.Elem(), request)})
	case reflect.Array:
		return append(a("array"), member{"items", d.schema(t.Elem(), request)}, member{"minItems", t.Len()},
			member{"maxItems", t.Len()})
	case reflect.Bool:
		return a("boolean")
	case reflect.String:
		return a("string")
	case reflect.Int64:
		return a("integer", "int64")
	case reflect.Int:
		return a("integer")
	case reflect.Float64:
		return a("number")
	}
	d.t.Fatalf("%s has no schema", t)
	return nil
}

// component adds the schema of a struct to those that have a name, and returns what refers to it.
func (d *describer) component(t reflect.Type, request bool) object {
	name := named[t]
	if name == "" {
		name = schemaName(t.Name())
	}
	if other, ok := d.types[name]; !ok {
		d.types[name] = t
		at := len(d.schemas)
		d.schemas = append(d.schemas, member{name: name})
		all := d.fields(t, request)
		if t == reflect.TypeFor[wire.Job]() {
			all = d.jobFields(all)
		}
		d.schemas[at].value = all.schema()
	} else if other != t {
		d.t.Errorf("both %s and %s are the schema %s", t, other, name)
	}
	return ref("schemas", name)
}

// schemaName is the name of the schema of a type: Claim of claimJSON, ClaimItems of a list of them.
func schemaName(of string) string {
	outer, _, generic := strings.Cut(of, "[")
	name := upper(strings.TrimSuffix(strings.TrimRight(of[strings.LastIndex(of, ".")+1:], "]"), "JSON"))
	if generic && outer != "either" {
		name += upper(outer)
	}
	return name
}

func upper(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

// text is what the source says of a field, as a sentence.
func (d *describer) text(t reflect.Type, f reflect.StructField) string {
	if _, ok := d.texts[t.PkgPath()]; !ok {
		d.texts[t.PkgPath()] = "read"
		d.read(t.PkgPath())
	}
	text := d.texts[t.PkgPath()+"."+t.Name()+"."+f.Name]
	if text == "" {
		return ""
	}
	return strings.TrimSuffix(upper(strings.Join(strings.Fields(text), " ")), ".") + "."
}

// read reads what the source of a package says of its fields.
func (d *describer) read(pkg string) {
	const here = "cmd/jobledger/internal/web"
	module := strings.TrimSuffix(reflect.TypeFor[newJob]().PkgPath(), here)
	files, err := filepath.Glob(filepath.Join("../../../..", strings.TrimPrefix(pkg, module), "*.go"))
	if err != nil || len(files) == 0 {
		d.t.Fatalf("no source of %s: %v", pkg, err)
	}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		if err != nil {
			d.t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			fields, ok := spec.Type.(*ast.StructType)
			if !ok {
				return false
			}
			for _, f := range fields.Fields.List {
				for _, name := range f.Names {
					d.texts[pkg+"."+spec.Name.Name+"."+name.Name] = cmp.Or(f.Doc.Text(), f.Comment.Text())
				}
			}
			return false
		})
	}
}
