package web

import (
	_ "embed" // for the document
	"net/http"
)

// document is the description of the API as OpenAPI 3.1.
//
//go:embed openapi.json
var document []byte

func (s *Server) openAPI(w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("Content-Type", "application/json")
	return send(w, document)
}
