package wire

import (
	"jobledger/commands"
	"jobledger/ledger"
)

// Problem is an error as RFC 9457 has it, with the exit code of the command line.
type Problem struct {
	Type   string  `json:"type"`
	Title  string  `json:"title"`
	Status int     `json:"status"`
	Detail string  `json:"detail"`
	Code   string  `json:"code"` // a word that never changes
	Exit   *int    `json:"exit"` // null: no command ran
	Hint   *string `json:"hint"`
	Job    *Job    `json:"job,omitempty"` // as it is, where its state does not permit what was asked for

	Field  string       `json:"field,omitempty"`  // of the input, that is wrong
	Errors []InputError `json:"errors,omitempty"` // of the input, where there are several, or lines
	Pos    int64        `json:"pos,omitempty"`    // of the last event, where the ledger has moved on since
}

// Error says what went wrong.
func (p *Problem) Error() string { return p.Detail }

// exits are the errors of package commands by their exit codes.
var exits = map[int]error{2: commands.ErrInvalid, 4: commands.ErrLeaseLost, 5: commands.ErrCancelled,
	6: commands.ErrConflict, 7: commands.ErrNoJob, 75: ledger.ErrBusy, 124: ledger.ErrBusy}

// Unwrap returns the error of package commands that the exit code stands for; nil if there is none.
func (p *Problem) Unwrap() error {
	if p.Exit == nil {
		return nil
	}
	return exits[*p.Exit]
}

// Temporary reports whether the same request may be answered otherwise later. A server whose disk is full
// answers 503; a later version, or a proxy, may answer 507.
func (p *Problem) Temporary() bool {
	return p.Status == 429 || p.Status >= 502 && p.Status <= 504 || p.Status == 507
}
