package api

import (
	"bytes"
	_ "embed" // for the document
	"net/http"
	"regexp"
	"sync"

	"jobledger/cmd/jobledger/internal/web/door"
)

// Document is the description of the API as OpenAPI 3.1, of a server that takes certificates of clients.
//
//go:embed openapi.json
var Document []byte

// withoutCertificates is Document as a server has it that takes no certificates of clients.
var withoutCertificates = sync.OnceValue(func() []byte {
	text := regexp.MustCompile(`,\s*{\s*"certificate": \[\]\s*}`).ReplaceAll(Document, nil)
	return regexp.MustCompile(`,\s*"certificate": {[^}]*}`).ReplaceAll(text, nil)
})

func (a *API) openAPI(w http.ResponseWriter, r *http.Request) error {
	if _, err := ReadParams(r, nil); err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	document := Document
	if a.Door.ClientCA == nil {
		document = withoutCertificates()
	}
	if prefix := a.Door.Prefix.Path; prefix != "" { // the paths of the document begin there
		document = bytes.Replace(document, []byte(`"url": "/"`), []byte(`"url": "`+prefix+`"`), 1)
	}
	return door.Send(w, document)
}
