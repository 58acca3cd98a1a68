package main

import (
	"path/filepath"
	"time"
)

// soakServer is the role of the server, which is killed and stopped like a worker.
const soakServer = "server"

// loopsOverHTTP returns the users of the ledger that a server serves, and what keeps that running.
func (s *soak) loopsOverHTTP() []func() {
	socket := "unix:" + filepath.Join(s.notes, "serve.sock") // only this user can reach it
	const producer, worker = 9, 9
	return []func(){
		func() {
			for s.underLoad() {
				s.attend(s.begin(soakServer, nil, nil, "serve", "--listen", socket))
				s.pause(50 * time.Millisecond)
			}
		},
		func() { s.produce(producer, "--url", socket) },
		func() { s.work(worker, "--url", socket) },
	}
}
