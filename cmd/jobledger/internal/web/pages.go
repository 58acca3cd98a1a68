package web

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
	"strings"
	"sync"
)

//go:embed templates/*.html
var templateFiles embed.FS

//go:embed assets/*
var assetFiles embed.FS

// assets are the files of assets, by a name that has a digest of what is in them.
var assets, assetNames = readAssets()

func readAssets() (content map[string][]byte, names map[string]string) {
	content, names = make(map[string][]byte), make(map[string]string)
	entries, err := assetFiles.ReadDir("assets")
	if err != nil {
		panic(err) // they are in the program
	}
	for _, e := range entries {
		text, err := assetFiles.ReadFile("assets/" + e.Name())
		if err != nil {
			panic(err)
		}
		sum := sha256.Sum256(text)
		ext := path.Ext(e.Name())
		name := strings.TrimSuffix(e.Name(), ext) + "." + hex.EncodeToString(sum[:6]) + ext
		content[name], names[e.Name()] = text, "/assets/"+name
	}
	return content, names
}

// assetTypes are the media types of assets.
var assetTypes = map[string]string{".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8",
	".svg": "image/svg+xml"}

func (s *Server) asset(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("name")
	text, ok := assets[name]
	if !ok {
		return refusal(http.StatusNotFound, "no_resource", "there is nothing at this address")
	}
	w.Header().Set("Content-Type", assetTypes[path.Ext(name)])
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	return send(w, text)
}

// templates are the pages, each with the frame around it. They are read at first use, so that the commands
// which show none begin sooner.
var templates = sync.OnceValue(func() map[string]*template.Template {
	all := make(map[string]*template.Template)
	for _, name := range []string{"login", "problem", "overview", "jobs", "job", "events"} {
		t := template.New("frame.html").Funcs(template.FuncMap{
			"asset": func(name string) string { return assetNames[name] },
			"path":  url.PathEscape,
		})
		all[name] = template.Must(t.ParseFS(templateFiles, "templates/frame.html", "templates/"+name+".html"))
	}
	return all
})

// render answers with a page. It is made as a whole before anything is sent.
func (s *Server) render(w http.ResponseWriter, name string, view any) error {
	var page bytes.Buffer
	if err := templates()[name].Execute(&page, view); err != nil {
		return fmt.Errorf("page %s: %w", name, err)
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	return send(w, page.Bytes())
}

func (s *Server) pageRoutes() []route {
	return []route{
		{"GET /{$}", withCredential, true, s.overview},
		{"GET /jobs", withCredential, true, s.jobsPage},
		{"GET /jobs/{job}", withCredential, true, s.jobPage},
		{"GET /events", withCredential, true, s.eventsPage},
		{"GET /tail", withCredential, true, s.tailPage},
	}
}
