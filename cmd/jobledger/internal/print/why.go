package print

import (
	"jobledger/cmd/jobledger/internal/state"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/ledger/event"
	"jobledger/projection/query"
)

// WhyThenJSON is why a job was in its state, with the moment and its state now.
type WhyThenJSON struct {
	state.Why
	AsOf     *string `json:"as_of" openapi:"optional=as_of,pos,state_now"`
	Pos      int64   `json:"pos"`
	StateNow string  `json:"state_now"`
}

// WhyJSON is why for programs; of a moment of the past, with that and the state of the job now.
func WhyJSON(why state.Why, now event.State, past query.Past) any {
	if !past.Given {
		return why
	}
	return WhyThenJSON{why, words.TimeOrNull(past.At), past.Pos, now.String()}
}
