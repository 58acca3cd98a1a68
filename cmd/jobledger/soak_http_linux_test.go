package main

import (
	"context"
	"path/filepath"
	"sync"
	"time"
)

// soakServer is the role of the server, which is killed and stopped like a worker.
const soakServer = "server"

// loopsOverHTTP returns the users of the ledger that a server serves, and what keeps that running. The server
// outlasts them: a worker that is to end waits until it could record how its jobs have ended.
func (s *soak) loopsOverHTTP() []func() {
	socket := "unix:" + filepath.Join(s.notes, "serve.sock") // only this user can reach it
	const producer, worker = 9, 9
	used, unused := context.WithCancel(context.Background())
	var users sync.WaitGroup
	users.Add(2)
	return []func(){
		func() {
			for used.Err() == nil {
				s.serveWhile(used, s.begin(soakServer, nil, nil, "serve", "--listen", socket))
				time.Sleep(50 * time.Millisecond) // between two starts
			}
		},
		func() { s.produce(producer, "--url", socket); users.Done() },
		func() { s.work(worker, "--url", socket); users.Done() },
		func() { users.Wait(); unused() },
	}
}

// serveWhile waits for the end of a server, and asks for it once the server is not used any more.
func (s *soak) serveWhile(used context.Context, p *soakProcess) {
	if p == nil {
		return
	}
	defer context.AfterFunc(used, func() { s.terminate(p) })()
	switch code := s.end(p); {
	case used.Err() != nil:
	case code == 0:
		s.faulty("a server ended without a signal: %s", p.stderr.String())
	case code > 0:
		s.counted("restarts of "+p.role, 1)
	}
}
