package api

import (
	"bytes"
	_ "embed" // for the document
	"net/http"

	"jobledger/cmd/jobledger/internal/web/door"
)

// Document is the description of the API as OpenAPI 3.1.
//
//go:embed openapi.json
var Document []byte

func (a *API) openAPI(w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("Content-Type", "application/json")
	document := Document
	if prefix := a.Door.Prefix.Path; prefix != "" { // the paths of the document begin there
		rest, _ := bytes.CutPrefix(Document, []byte("{"))
		document = append([]byte(`{"servers": [{"url": "`+prefix+`"}],`), rest...)
	}
	return door.Send(w, document)
}
