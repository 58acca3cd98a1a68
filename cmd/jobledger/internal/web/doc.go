// Package web serves a ledger to browsers and other programs over HTTP: pages, a JSON API, and metrics.
//
//	server := web.New(web.Config{Store: store, Ask: ask, Now: time.Now})
//	listener, err := door.Listen(ctx, "127.0.0.1:0")
//	err = server.Serve(ctx, listener) // until ctx ends
//
// Each answer needs a credential, also on the loopback interface: a session, which a login link begins, or a
// Unix socket whose peer is the same user. It has these parts, each a package of its own, and each uses those
// before it only:
//
//   - view: what is read from the ledger once for all who ask, such as the events as they are recorded
//   - door: who is let in, and what becomes of errors
//   - api: answers as JSON, streams of events, metrics for Prometheus
//   - send: answers of any length
//   - page: pages for people
//
// server.go has the life of a server, and admin.go what concerns its process.
//
// The package has no words and no figures of its own for a job: the API runs the verbs of the command line,
// and the pages use their tables.
//
// Held by TestServerEndsWhenReplacedOrStopped, TestReadyUntilTheServerEnds, TestProfilesNeedScopeAdmin and
// TestRightsOfEveryRoute.
package web
