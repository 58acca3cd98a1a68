package page

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"jobledger/cmd/jobledger/internal/find"
	"jobledger/cmd/jobledger/internal/web/act"
	"jobledger/cmd/jobledger/internal/web/api"
	"jobledger/cmd/jobledger/internal/web/door"
	"jobledger/cmd/jobledger/internal/web/draw"
	"jobledger/cmd/jobledger/internal/words"
)

// Pages answers people. It is safe for concurrent use.
type Pages struct {
	*api.API
	Acts *act.Acts
	// Ledgers are all that this process serves, where they are several.
	Ledgers []Ledger
	Name    string // the ledger, as pages call it

	Now func() time.Time // in the zone of the request, in place of that of the API
	tz  string           // the zone that the address of the request names; ""
}

// Routes are those of the pages. Each request has pages of its own, with its zone.
func (p *Pages) Routes() []door.Route {
	routes := p.routes()
	for i := range routes {
		routes[i].Handle = func(w http.ResponseWriter, r *http.Request) error {
			q, zoned, err := p.inZone(r)
			if err == nil {
				err = q.routes()[i].Handle(w, zoned)
			}
			r.PostForm = zoned.PostForm // a page of the error has what was typed
			return err
		}
	}
	return routes
}

// routes are those of the pages in the zone that p has.
func (p *Pages) routes() []door.Route {
	routes := []door.Route{
		{Pattern: "GET /login", Handle: p.loginPage},
		{Pattern: "POST /login", Handle: p.login},
		{Pattern: "POST /login/link", Handle: p.newLink},
		{Pattern: "POST /logout", Needs: door.Read, Handle: p.logout},
		{Pattern: "GET /{$}", Needs: door.Read, Handle: p.overview},
		{Pattern: "GET /lanes", Needs: door.Read, Long: true, Handle: p.lanesPage},
		{Pattern: "GET /ledgers", Needs: door.Read, Handle: p.ledgersPage},
		{Pattern: "GET /failures", Needs: door.Read, Handle: p.failuresPage},
		{Pattern: "GET /workers", Needs: door.Read, Handle: p.workersPage},
		{Pattern: "GET /workers/{worker}", Needs: door.Read, Long: true, Handle: p.workerPage},
		{Pattern: "GET /queues/{queue}", Needs: door.Read, Long: true, Handle: p.queuePage},
		{Pattern: "GET /diff", Needs: door.Read, Handle: p.diffPage},
		{Pattern: "GET /incident", Needs: door.Read, Long: true, Handle: p.incidentPage},
		{Pattern: "GET /api", Needs: door.Any, Queues: true, Handle: p.apiPage},
		{Pattern: "GET /integrity", Needs: door.Read, Handle: p.integrityPage},
		{Pattern: "POST /integrity", Needs: door.Read | door.Operate, Handle: p.checkAll},
		{Pattern: "GET /jobs", Needs: door.Read, Long: true, Handle: p.jobsPage}, // a search, and the figures
		{Pattern: "GET /jobs/{job}", Needs: door.Read, Handle: p.jobPage},
		{Pattern: "GET /events", Needs: door.Read, Handle: p.eventsPage},
		{Pattern: "GET /tail", Needs: door.Read, Handle: p.tailPage},
		{Pattern: "GET /zone", Needs: door.Any, Queues: true, Handle: p.zonePage},
		{Pattern: "POST /zone", Needs: door.Any, Queues: true, Handle: p.setZone},
	}
	for i := range routes {
		routes[i].Page = true
		params, ok := paramsOf[routes[i].Pattern]
		if strings.HasPrefix(routes[i].Pattern, "GET ") && (!ok || slices.Contains(params, "at")) {
			routes[i].Handle = p.fixed(routes[i].Handle)
		}
		if ok {
			routes[i].Handle = taking(params, routes[i].Handle)
		}
	}
	return append(append(routes, p.actRoutes()...),
		door.Route{Pattern: "GET /assets/{name}", Handle: p.asset},
		door.Route{Pattern: "GET /tail/stream", Needs: door.Read, Streams: true, Handle: p.streamPage},
		door.Route{Pattern: "/", Needs: door.Read, Handle: func(http.ResponseWriter, *http.Request) error {
			return door.Refusal(http.StatusNotFound, "no_resource", "there is nothing at this address")
		}})
}

// paramsOf are the parameters of pages, each once. Those that are not here have the parameters of a resource
// of the API, or of none.
var paramsOf = map[string][]string{"GET /login": nil, "GET /{$}": {"at"}, "GET /ledgers": nil,
	"GET /api": nil, "GET /zone": {"back"},
	"GET /lanes": api.LanePageParams, "GET /failures": api.FailureParams, "GET /workers": {"at", "all"},
	"GET /workers/{worker}": {"at", "from", "to"}, "GET /queues/{queue}": {"at", "from", "to"},
	"GET /diff":     {"at", "from", "to", "swap", "was", "is"},
	"GET /incident": {"at", "from", "to"}, "GET /integrity": {"at"},
	"GET /jobs/{job}": {"at"}, "GET /tail": {"kind", kindsParam, "queue", "job", "worker", "actor"}}

// taking refuses requests with other parameters than params.
func taking(params []string, handle func(http.ResponseWriter, *http.Request) error) func(http.ResponseWriter,
	*http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		query, err := api.QueryOf(r)
		if err == nil {
			err = api.CheckParams(query, params, "kind")
		}
		if err != nil {
			return err
		}
		return handle(w, r)
	}
}

//go:embed templates/*.html
var templateFiles embed.FS

//go:embed assets/*
var assetFiles embed.FS

// Assets returns the files of assets, by a name that has a digest of what is in them, and their addresses by
// the name of the file. They are read at first use.
var Assets = sync.OnceValues(readAssets)

func readAssets() (content map[string][]byte, names map[string]string) {
	content, names = make(map[string][]byte), make(map[string]string)
	entries, err := assetFiles.ReadDir("assets")
	if err != nil {
		panic(err) // they are in the program
	}
	imported := regexp.MustCompile(`((?:from|import) "\./)([\w.-]+)(";)`)
	for _, e := range entries {
		readAsset(e.Name(), imported, content, names)
	}
	return content, names
}

// readAsset adds the file called name, and before that those that it imports, by their names with digests. It
// returns the file's name with its digest.
func readAsset(name string, imported *regexp.Regexp, content map[string][]byte,
	names map[string]string) string {
	if known, ok := names[name]; ok {
		return path.Base(known)
	}
	text, err := assetFiles.ReadFile("assets/" + name)
	if err != nil {
		panic(err)
	}
	text = imported.ReplaceAllFunc(text, func(found []byte) []byte {
		part := imported.FindSubmatch(found)
		return []byte(string(part[1]) + readAsset(string(part[2]), imported, content, names) + string(part[3]))
	})
	sum := sha256.Sum256(text)
	ext := path.Ext(name)
	digested := strings.TrimSuffix(name, ext) + "." + hex.EncodeToString(sum[:6]) + ext
	content[digested], names[name] = text, "/assets/"+digested
	return digested
}

// assetTypes are the media types of assets.
var assetTypes = map[string]string{".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8",
	".svg": "image/svg+xml"}

func (p *Pages) asset(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("name")
	assets, _ := Assets()
	text, ok := assets[name]
	if !ok {
		return door.Refusal(http.StatusNotFound, "no_resource", "there is nothing at this address")
	}
	w.Header().Set("Content-Type", assetTypes[path.Ext(name)])
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	return door.Send(w, text)
}

// templates are the pages, each with the frame around it. They are read at first use, so that the commands
// which show none begin sooner.
var templates = sync.OnceValue(func() map[string]*template.Template {
	all := make(map[string]*template.Template)
	_, addresses := Assets()
	for _, name := range []string{"login", "problem", "overview", "lanes", "jobs", "job", "events",
		"failures", "workers", "worker", "queue", "diff", "incident", "integrity", "acts", "ledgers", "api",
		"zone"} {
		t := template.New("frame.html").Funcs(template.FuncMap{
			"asset": func(name string) string { return addresses[name] },
			"path":  url.PathEscape,
			"kinds": find.KindNames,
			"count": func(n int, one, many string) string {
				return fmt.Sprintf("%d %s", n, words.Plural(int64(n), one, many))
			},
			"named":  named,
			"linked": linked,
			"legend": draw.Legend,
		})
		all[name] = template.Must(t.ParseFS(templateFiles, "templates/frame.html", "templates/"+name+".html"))
	}
	return all
})

// namedTable is a table with a name for those who cannot see it.
type namedTable struct {
	*words.Table
	Name string
	At   string // the moment of the page, for its links
}

func named(name string, table *words.Table, at ...string) namedTable {
	return namedTable{table, name, strings.Join(at, "")}
}

var jobPattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\b[0-7][0-9A-HJKMNP-TV-Z]{25}\b`)
})

// linked are the parts of a cell with that title, in which jobs and workers lead to their pages at a moment.
func linked(title, cell, at string) (parts []link) {
	query := ""
	if at != "" {
		query = "?" + url.Values{"at": {at}}.Encode()
	}
	switch title {
	case "WORKER":
		if cell != "" && cell != "-" {
			return []link{{cell, "/workers/" + url.PathEscape(cell) + query}}
		}
	case "JOB", "HELD THEN":
		done := 0
		for _, place := range jobPattern().FindAllStringIndex(cell, -1) {
			id := cell[place[0]:place[1]]
			parts = append(parts, link{cell[done:place[0]], ""}, link{id, "/jobs/" + id + query})
			done = place[1]
		}
		return append(parts, link{cell[done:], ""})
	}
	return []link{{cell, ""}}
}

// render answers with a page. It is made as a whole before anything is sent.
func (p *Pages) render(w http.ResponseWriter, name string, view any) error {
	var page bytes.Buffer
	if err := templates()[name].Execute(&page, view); err != nil {
		return fmt.Errorf("page %s: %w", name, err)
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	return door.Send(w, p.prefixed(timed(plain(page.Bytes()))))
}

// prefixed puts the prefix of the server before each address of it in a page. It finds them as the values of
// attributes: text has no quotation mark, because templates escape those. Scripts find the prefix in the
// first element.
func (p *Pages) prefixed(page []byte) []byte {
	prefix := p.Door.Prefix.Path
	if prefix == "" {
		return page
	}
	pairs := []string{`<html lang="en">`, `<html lang="en" data-prefix="` + prefix + `">`}
	for _, name := range []string{"href", "action", "src", "data-stream", "data-lanes", "data-map"} {
		pairs = append(pairs, " "+name+`="/`, " "+name+`="`+prefix+"/")
	}
	return []byte(strings.NewReplacer(pairs...).Replace(string(page)))
}
