// Package api answers programs over HTTP: as JSON what the verbs of the command line print, events as they
// are recorded, and metrics.
//
//	a := api.New(api.Config{Store: store, Door: d, Follower: f, Ask: ask, Now: time.Now})
//	d.Add(a.Routes()...)
//
// Files in reading order: api.go (resources, and the verb behind each), words.go, params.go (the parameters
// of an address), bodies.go (payloads and results), stream.go (server-sent events), lanes.go, moments.go,
// pictures.go (numbers for pictures), incident.go (a zip file), metrics.go (Prometheus), openapi.go (the
// description of it all).
package api
