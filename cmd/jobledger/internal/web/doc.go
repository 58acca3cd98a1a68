// Package web serves a ledger to browsers and other programs over HTTP: pages, a JSON API, and metrics. It
// only reads.
//
//	server := web.New(web.Config{Store: store, Ask: ask, Now: time.Now})
//	listener, err := web.Listen(ctx, "127.0.0.1:0")
//	err = server.Serve(ctx, listener) // until ctx ends
//
// Each answer needs a credential, also on the loopback interface: a session, which a login link begins, or a
// Unix socket whose peer is the same user. Every request passes [Server.Handler]: the host it names, then
// where it comes from, then its method, then its credential, and then the handler of its route.
//
// Files in reading order: server.go (the life of a server), listen.go and peer_linux.go (what it listens at),
// guard.go (what a request must pass), session.go (login links and sessions), problem.go (errors), reply.go
// (what an answer goes through), api.go (answers as JSON), follower.go and stream.go (events as they are
// recorded), metrics.go (answers for Prometheus); pages.go and frame.go (what pages share, and the moment
// that they show), overview.go, jobs.go, job.go, bar.go, events.go (one page each, and a picture).
//
// The package has no words and no figures of its own for a job: the API runs the verbs of the command line,
// and the pages use their tables.
package web
