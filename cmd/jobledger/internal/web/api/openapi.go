package api

import (
	_ "embed" // for the document
	"net/http"

	"jobledger/cmd/jobledger/internal/web/door"
)

// Document is the description of the API as OpenAPI 3.1.
//
//go:embed openapi.json
var Document []byte

func openAPI(w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("Content-Type", "application/json")
	return door.Send(w, Document)
}
