package api

import (
	"archive/zip"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"

	"jobledger/cmd/jobledger/internal/buildinfo"
	"jobledger/cmd/jobledger/internal/export"
	"jobledger/cmd/jobledger/internal/fault"
	"jobledger/cmd/jobledger/internal/incident"
	"jobledger/cmd/jobledger/internal/web/door"
	"jobledger/ledger"
	"jobledger/projection/query"
)

// IncidentParams are the parameters of an incident.
var IncidentParams = []string{"from", "to", "bodies", "window_only"}

// incident sends the folder that the verb incident writes, as a zip file.
func (a *API) incident(w http.ResponseWriter, r *http.Request) error {
	query, err := QueryOf(r)
	if err == nil {
		err = CheckParams(query, IncidentParams)
	}
	if err != nil {
		return err
	}
	given := map[string]bool{}
	for _, name := range []string{"bodies", "window_only"} {
		if query.Has(name) && query.Get(name) != "true" && query.Get(name) != "false" {
			return door.BadInput(name, name+" is true or false")
		}
		given[name] = query.Get(name) == "true"
		query.Del(name)
	}
	if given["bodies"] && !MaySeeBodies(r.Context()) {
		return door.ErrNoBodies
	}
	window, err := a.window(r, query)
	if err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "jobledger-incident-")
	if err != nil {
		return fmt.Errorf("incident: %w", err)
	}
	defer os.RemoveAll(folder)
	path := filepath.Join(folder, "incident")
	options := incident.FolderOptions{Path: path, Actor: door.CallerOf(r.Context()).Actor, Now: a.Now(),
		Program: buildinfo.ProgramName + " " + buildinfo.Read().String(), Bodies: given["bodies"],
		WindowOnly: given["window_only"]}
	options.Withhold = ShownTo(r.Context())
	if _, err = incident.WriteFolder(r.Context(), a.Store, window, options); err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Type", "application/zip")
	name := "incident-" + window.From.UTC().Format("20060102T150405Z") + ".zip"
	h.Set("Content-Disposition", `attachment; filename="`+name+`"`)
	return zipFolder(w, path)
}

// window is the events of the query.
func (a *API) window(r *http.Request, given url.Values) (w export.Window, err error) {
	s, err := ledger.Read(r.Context(), a.Store, func(tx *ledger.Tx) (query.Lanes, error) {
		return a.Span(r.Context(), tx, given)
	})
	w = export.Window{After: s.From.Pos, Until: s.To.Pos, From: s.From.At, To: s.To.At}
	if err == nil && w.Empty() {
		err = fault.Exitf(fault.ExitNothing, "nothing happened between from and to")
	}
	return w, err
}

// zipFolder writes the files of folder as a zip file.
func zipFolder(w io.Writer, folder string) error {
	z := zip.NewWriter(w)
	entries, err := os.ReadDir(folder)
	if err != nil {
		return fmt.Errorf("zip: %w", err)
	}
	for _, e := range entries {
		if err := zipFile(z, folder, e.Name()); err != nil {
			return fmt.Errorf("zip: %w", err)
		}
	}
	return z.Close()
}

func zipFile(z *zip.Writer, folder, name string) error {
	f, err := os.Open(filepath.Join(folder, name))
	if err != nil {
		return err
	}
	defer f.Close()
	to, err := z.Create(name)
	if err == nil {
		_, err = io.Copy(to, f)
	}
	return err
}
