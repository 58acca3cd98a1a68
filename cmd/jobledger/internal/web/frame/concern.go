package frame

import "jobledger/cmd/jobledger/internal/state"

// Concern is a sentence about a queue or about workers.
type Concern struct {
	Level  string
	Queue  string // "": it is about none
	Text   string
	Code   string // of doctor
	Remedy string // a command line
	Href   string
	// what Href is about, if Queue is empty
	Subject string
}

// LevelNames are how urgent a concern is.
var LevelNames = map[state.Level]string{state.Info: "info", state.Warning: "warning",
	state.Problem: "problem"}
