package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"jobledger/cmd/jobledger/internal/web/door"
	"jobledger/cmd/jobledger/internal/when"
	"jobledger/ledger"
	"jobledger/projection"
	"jobledger/projection/query"
	"jobledger/projection/status"
)

// Moment returns the moment that value names, the value of the parameter name, as --as-of is read.
func (a *API) Moment(ctx context.Context, tx *ledger.Tx, name, value string) (projection.Moment, error) {
	now := door.In(ctx, a.Now())
	moment, err := when.ReadWhen(name, value, now)
	if err != nil {
		return projection.Moment{}, err
	}
	return moment.Moment(ctx, tx, name, now)
}

// asked returns the moment that the parameter at of query names; without, that of the last event.
func (a *API) asked(ctx context.Context, tx *ledger.Tx, query url.Values) (m projection.Moment, err error) {
	if query.Has("at") {
		return a.Moment(ctx, tx, "at", query.Get("at"))
	}
	m.Pos, err = tx.Tail(ctx)
	return m, err
}

// Span returns the window that query names, whose parameters were checked. Without to it ends at the moment
// at, or now; without from and to, where the last claim ended long before that, soon after it. Without from
// it begins six hours before its end. With at the window ends at that moment at the latest; one that begins
// later is moved so that it ends there. For a caller with some queues, the window does not depend on other
// queues: it does not end after the last claim, and a position must be of an event of the queue.
func (a *API) Span(ctx context.Context, tx *ledger.Tx, given url.Values) (s query.Lanes, err error) {
	if err := checkQueue(given); err != nil {
		return s, err
	}
	s.Queue, s.Worker = given.Get("queue"), given.Get("worker")
	if s.Group = cmp.Or(given.Get("group"), query.Groups[0]); !slices.Contains(query.Groups, s.Group) {
		return s, door.BadInput("group", "group is one of "+strings.Join(query.Groups, ", "))
	}
	if c := door.CallerOf(ctx); !c.AllQueues() {
		s.Own = true
		if err := a.ownPositions(ctx, tx, given); err != nil {
			return s, err
		}
		defer func() {
			if errors.Is(err, projection.ErrArchived) { // its text has a position for a time
				err = door.Refusal(http.StatusNotFound, "archived", "the first events of the window are archived")
			}
		}()
	}
	if px := given.Get("px"); px != "" {
		if s.Columns, err = strconv.Atoi(px); err != nil || s.Columns < 1 || s.Columns > maxColumns {
			return s, door.BadInput("px",
				fmt.Sprintf("px is a number from 1 to %d", maxColumns))
		}
	}
	switch at := given.Get("at"); {
	case given.Get("to") != "":
		s.To, err = a.Moment(ctx, tx, "to", given.Get("to"))
	case at != "":
		s.To, err = a.Moment(ctx, tx, "at", at)
	default:
		made, isCopy, copyErr := status.CopyOf(ctx, tx)
		if s.To, err = made.Moment, copyErr; err == nil && !isCopy {
			s.To, err = a.Moment(ctx, tx, "to", "now")
		}
	}
	if err == nil && given.Get("to") == "" && given.Get("from") == "" && !s.Own {
		s.To, err = lastClaims(ctx, tx, s.To)
	}
	if err != nil {
		return s, err
	}
	if from := given.Get("from"); from != "" {
		s.From, err = a.Moment(ctx, tx, "from", from)
	} else {
		s.From, err = projection.AtTime(ctx, tx, s.To.At.Add(-defaultSpan))
	}
	if at := given.Get("at"); err == nil && at != "" && given.Get("to") != "" {
		s, err = a.before(ctx, tx, s, at)
	}
	if at := given.Get("at"); err == nil && at != "" {
		s.At, err = a.Moment(ctx, tx, "at", at)
	}
	if err == nil && (s.From.At.After(s.To.At) || s.From.At.Equal(s.To.At) && s.From.Pos >= s.To.Pos) {
		err = door.BadInput("from", "from is before to")
	}
	return s, err
}

// ownPositions returns an error unless each position in query is of an event of its queue, because the answer
// shows the time of that event.
func (a *API) ownPositions(ctx context.Context, tx *ledger.Tx, query url.Values) error {
	for _, name := range []string{"at", "from", "to"} {
		moment, err := when.ReadWhen(name, query.Get(name), a.Now())
		if query.Get(name) == "" || err != nil || !moment.ByPos { // an error is for the one who reads it
			continue
		}
		found := false
		if moment.Pos > 0 {
			own := ledger.Filter{Queue: query.Get("queue"), After: moment.Pos - 1, Until: moment.Pos}
			if _, found, err = tx.OneEvent(ctx, own); err != nil {
				return err
			}
		}
		if !found {
			return errNoEvent(moment.Pos)
		}
	}
	return nil
}

// namedPos is the position that an answer about s has. The one at the end of a window of the past would say
// how much had happened in all queues by then.
func namedPos(ctx context.Context, tx *ledger.Tx, s query.Lanes) (int64, error) {
	if s.Own {
		return tx.Tail(ctx)
	}
	return s.To.Pos, nil
}

// before is s, which ends at the moment at the latest.
func (a *API) before(ctx context.Context, tx *ledger.Tx, s query.Lanes, at string) (query.Lanes, error) {
	m, err := a.Moment(ctx, tx, "at", at)
	if err != nil || s.To.Pos <= m.Pos {
		return s, err
	}
	long := s.To.At.Sub(s.From.At)
	if s.To = m; s.From.Pos >= m.Pos {
		s.From, err = projection.AtTime(ctx, tx, m.At.Add(-long))
	}
	return s, err
}

// lastClaims is m, or the moment soon after the last claim before it where that is long ago.
func lastClaims(ctx context.Context, tx *ledger.Tx, m projection.Moment) (projection.Moment, error) {
	if m.Pos == 0 {
		return m, nil
	}
	e, found, err := tx.OneEvent(ctx, ledger.Filter{Ending: true, Until: m.Pos, Last: true})
	if end := e.At.Add(time.Minute); found && end.Before(m.At.Add(-defaultSpan/4)) {
		return projection.AtTime(ctx, tx, end.Truncate(time.Minute).Add(time.Minute))
	}
	return m, err
}
