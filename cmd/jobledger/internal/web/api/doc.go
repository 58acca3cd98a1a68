// Package api answers programs over HTTP: as JSON what the verbs of the command line print, and events as
// they are recorded.
//
//	a := api.New(api.Config{Store: store, Door: d, Follower: f, Now: time.Now})
//	d.Add(a.Routes()...)
//
// Files in reading order: api.go (the routes), resources.go (what pages and programs ask for by the same
// parameters), jobs.go, events.go, params.go (the parameters of an address), bodies.go (payloads and
// results), stream.go (server-sent events), span.go (windows), lanes.go, reports.go, moments.go, pictures.go
// (numbers for pictures), incident.go (a zip file), openapi.go.
//
// openapi.json is the description of the API as OpenAPI 3.1. It is not written by hand: the test
// TestDocumentIsThatOfTheRoutes of package web makes it, with -update, from the routes of all packages, each
// with a [door.Doc], and from the types of their bodies and answers, with the comments of their fields.
// Without -update the test compares the two. Package apitest checks answers against it.
//
// Held by TestLabelsAreEscaped here, by TestDocumentIsThatOfTheRoutes of the server, by
// TestServeAnswersAsTheVerbs and TestAnswersAreInTheDocument of the program, and by
// TestStreamResumesWithoutGap of the server.
package api
