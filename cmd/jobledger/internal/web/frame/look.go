package frame

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
	"strings"
	"sync"

	"jobledger/cmd/jobledger/internal/find"
	"jobledger/cmd/jobledger/internal/web/door"
	"jobledger/cmd/jobledger/internal/web/draw"
	"jobledger/cmd/jobledger/internal/words"
)

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
	if path.Ext(name) == ".css" {
		text = compact(text)
	}
	sum := sha256.Sum256(text)
	ext := path.Ext(name)
	digested := strings.TrimSuffix(name, ext) + "." + hex.EncodeToString(sum[:6]) + ext
	content[digested], names[name] = text, "/assets/"+digested
	return digested
}

// compact is a stylesheet without comments, and without space where it means nothing.
func compact(text []byte) []byte {
	text = regexp.MustCompile(`(?s)/\*.*?\*/`).ReplaceAll(text, nil)
	text = regexp.MustCompile(`\s+`).ReplaceAll(text, []byte(" "))
	return regexp.MustCompile(`;? ?([{};]) ?|([,:]) | ([>+]) `).ReplaceAll(text, []byte("$1$2$3"))
}

// assetTypes are the media types of assets.
var assetTypes = map[string]string{".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8",
	".svg": "image/svg+xml"}

func (p *Site) asset(w http.ResponseWriter, r *http.Request) error {
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
		"zone", "queues", "setting", "schedules", "schedule"} {
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
func linked(title, cell, at string) (parts []Link) {
	query := ""
	if at != "" {
		query = "?" + url.Values{"at": {at}}.Encode()
	}
	switch title {
	case "WORKER":
		if cell != "" && cell != "-" {
			return []Link{{cell, "/workers/" + url.PathEscape(cell) + query}}
		}
	case "queue":
		return []Link{{cell, "/queues/" + url.PathEscape(cell) + query}}
	case "schedule":
		return []Link{{cell, "/schedules/" + url.PathEscape(cell) + query}}
	case "JOB", "HELD THEN", "after":
		done := 0
		for _, place := range jobPattern().FindAllStringIndex(cell, -1) {
			id := cell[place[0]:place[1]]
			parts = append(parts, Link{cell[done:place[0]], ""}, Link{id, "/jobs/" + id + query})
			done = place[1]
		}
		return append(parts, Link{cell[done:], ""})
	}
	return []Link{{cell, ""}}
}

// Render answers with a page. It is made as a whole before anything is sent.
func (p *Site) Render(w http.ResponseWriter, name string, view any) error {
	var page bytes.Buffer
	if err := templates()[name].Execute(&page, view); err != nil {
		return fmt.Errorf("page %s: %w", name, err)
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	return door.Send(w, p.prefixed(timed(plain(page.Bytes()))))
}

// prefixed puts the prefix of the server before each address of it in a page. It finds them by their
// quotation marks, as values of attributes: templates escape quotation marks in text. Scripts find the prefix
// in the first element.
func (p *Site) prefixed(page []byte) []byte {
	prefix := p.Door.Prefix.Path
	if prefix == "" {
		return page
	}
	pairs := []string{`<html lang="en"`, `<html lang="en" data-prefix="` + prefix + `"`}
	for _, name := range []string{"href", "action", "src", "data-stream", "data-lanes", "data-map"} {
		pairs = append(pairs, " "+name+`="/`, " "+name+`="`+prefix+"/")
	}
	return []byte(strings.NewReplacer(pairs...).Replace(string(page)))
}
