package row

import "jobledger/ledger/event"

// Values are the values of a row that is to be written, in the order of Names: int64, string, []byte, or nil
// for null.
type Values [width]any

// Of returns the row of e, whose actor and worker have these numbers in the dictionary; 0 is not a worker.
func Of(e *event.Event, actor, worker int64) Values {
	kind := e.Kind()
	var ulid any
	switch {
	case kind == event.KindEnqueued:
		ulid = string(e.Job)
	case kind.StoresToken():
		ulid = e.Token
	}
	data, digest := event.AppendStored(nil, event.OmitDefaults(e.Body, e.At))
	return Values{e.Pos, integerOrNull(e.N), integerOrNull(e.Seq), int64(kind), event.Micros(e.At), actor,
		integerOrNull(worker), ulid, integerOrNull(int64(e.Attempt)), integerOrNull(int64(e.From)),
		integerOrNull(int64(e.To)), bytesOrNull(digest), textOrNull(data)}
}

func integerOrNull(n int64) any {
	if n == 0 {
		return nil
	}
	return n
}

func bytesOrNull(b []byte) any {
	if b == nil {
		return nil
	}
	return b
}

func textOrNull(b []byte) any {
	if b == nil {
		return nil
	}
	return string(b)
}
