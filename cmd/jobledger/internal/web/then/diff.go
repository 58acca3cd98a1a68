package then

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"jobledger/cmd/jobledger/internal/print"
	"jobledger/cmd/jobledger/internal/web/api"
	"jobledger/cmd/jobledger/internal/web/door"
	"jobledger/cmd/jobledger/internal/web/frame"
	"jobledger/cmd/jobledger/internal/web/sqltext"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection/query"
	"jobledger/projection/status"
)

// How many jobs of each cell of a diff are listed: for all cells, and for the one that is asked for.
const (
	diffJobs  = 5
	chosenMax = 500
)

// diffView is what the page of a comparison shows.
type diffView struct {
	frame.Span
	Matrix  *matrixView // nil: nothing happened to any job
	Lines   []string
	Between string // the moments, the one that rows are of first
	Count   string // of the events in between
	Events  string
	Swap    string // the address of the same, with rows and columns exchanged
	Swapped bool
	Queues  *words.Table
	Acts    *frame.Did

	Was, Is    string // the states of the cell that was asked for; "": none was
	Chosen     []event.JobID
	ChosenText string // how many jobs the cell has
}

// matrixView is how many jobs went from one state to another.
type matrixView struct {
	Columns []words.Column
	Rows    []matrixRow
}

// matrixRow has the jobs that were in one state; each cell with jobs links to them.
type matrixRow struct {
	Name  string
	Cells []frame.Link
}

// maxActs is how many acts of operators the page has, the last ones.
const maxActs = 50

// diffPage shows what changed between two moments.
func (p *Pages) diffPage(w http.ResponseWriter, r *http.Request) error {
	shown, zone := diffView{}, p.Now().Location()
	var d status.Diff
	given, err := api.QueryOf(r)
	if err != nil {
		return err
	}
	if err := shown.choose(given); err != nil {
		return err
	}
	limit := diffJobs
	if shown.Is != "" {
		limit = chosenMax
	}
	_, span, err := p.ReadSpan(r, "Diff", &shown.Frame, func(tx *ledger.Tx, s query.Lanes) (err error) {
		if d, err = status.Compare(r.Context(), tx, s.From, s.To, limit); err != nil {
			return err
		}
		between, err := query.Between{Span: s.Span, Acts: maxActs}.Read(r.Context(), tx)
		shown.addBetween(between, p.Now())
		return err
	})
	if err != nil {
		return err
	}
	shown.SetWindow(p.Site, given, span)
	here := url.Values{"from": {shown.From}, "to": {shown.To}}
	shown.Events = "/events?" + here.Encode()
	shown.API = "/api/v1/diff?" + here.Encode()
	shown.Command = frame.CommandOf([]string{"diff", "--from=" + shown.From, "--to=" + shown.To})
	if shown.At != "" {
		here.Set("at", shown.At)
	}
	shown.addMatrix(d, here)
	shown.addChosen(d)
	for i := range d.Cells {
		d.Cells[i].Jobs = d.Cells[i].Jobs[:min(diffJobs, len(d.Cells[i].Jobs))]
	}
	shown.Lines = print.DiffLines(d, zone)
	shown.Between, shown.Count = print.DiffBetween(span.From, span.To, zone),
		words.Count(span.To.Pos-span.From.Pos, "event")
	if shown.Swapped {
		shown.Between = print.DiffBetween(span.To, span.From, zone)
	} else {
		here.Set("swap", "true")
	}
	shown.Swap = "/diff?" + here.Encode()
	shown.SQL = sqltext.Window("kind, count(*)", span.From.Pos, span.To.Pos, "GROUP BY kind")
	return p.Render(w, "diff", shown)
}

// choose takes in which cell the query asks for, and in which order.
func (v *diffView) choose(query url.Values) error {
	v.Was, v.Is = query.Get("was"), query.Get("is")
	known := func(state string) bool {
		for _, s := range event.States() {
			if s.String() == state {
				return true
			}
		}
		return false
	}
	switch swap := query.Get("swap"); {
	case swap != "" && swap != "true" && swap != "false":
		return door.Refusal(http.StatusBadRequest, "usage", "swap is true or false")
	case (v.Was == "") != (v.Is == ""),
		v.Is != "" && !(known(v.Is) && (v.Was == "new" || known(v.Was))):
		return door.Refusal(http.StatusBadRequest, "usage", "was and is are states of jobs; was may be new")
	default:
		v.Swapped = swap == "true"
	}
	return nil
}

// stateName is a state in an address, as a table of a diff has it.
func stateName(text string) string {
	text = strings.ToLower(strings.TrimPrefix(text, "→ "))
	if text == "–" {
		return "new"
	}
	return text
}

// addMatrix adds the cells of d. Without a swap rows are the states at the first moment.
func (v *diffView) addMatrix(d status.Diff, here url.Values) {
	if len(d.Cells) == 0 {
		return
	}
	cells := slices.Clone(d.Cells)
	if v.Swapped {
		for i, c := range cells {
			cells[i].From, cells[i].To = c.To, c.From
		}
	}
	t := print.DiffMatrix(cells)
	v.Matrix = &matrixView{Columns: t.Columns[1:]}
	for _, row := range t.Rows() {
		line := matrixRow{Name: row[0]}
		for i, n := range row[1:] {
			was, is := stateName(row[0]), stateName(t.Columns[i+1].Title)
			if v.Swapped {
				was, is = is, was
			}
			cell := frame.Link{Text: n}
			if n != "0" {
				q := api.Cloned(here)
				q.Set("was", was)
				q.Set("is", is)
				if v.Swapped {
					q.Set("swap", "true")
				}
				cell.Href = "/diff?" + q.Encode() + "#chosen"
			}
			line.Cells = append(line.Cells, cell)
		}
		v.Matrix.Rows = append(v.Matrix.Rows, line)
	}
}

// addChosen adds the jobs of the cell that was asked for.
func (v *diffView) addChosen(d status.Diff) {
	for _, c := range d.Cells {
		was := c.From.String() == v.Was || c.From == 0 && v.Was == "new"
		if v.Is != "" && was && c.To.String() == v.Is {
			v.Chosen, v.ChosenText = c.Jobs, words.Count(c.Count, "job")+"."
			if n := len(c.Jobs); int64(n) < c.Count {
				v.ChosenText = fmt.Sprintf("The oldest %d of %s", n, v.ChosenText)
			}
		}
	}
}

// addBetween adds the queues at both ends, and what operators did.
func (v *diffView) addBetween(b query.QueuesBetween, now time.Time) {
	arrow := func(from, to string) string {
		if v.Swapped {
			from, to = to, from
		}
		return from + " → " + to
	}
	wait := func(t query.QueueThen) string {
		if t.Claims == 0 {
			return "-"
		}
		return frame.ShortWait(t.WaitP99)
	}
	if len(b.Queues) > 0 {
		v.Queues = &words.Table{Columns: []words.Column{{Title: "QUEUE"}, {Title: "QUEUED", Right: true},
			{Title: "HELD", Right: true}, {Title: "WAIT P99", Right: true}}}
	}
	for _, q := range b.Queues {
		v.Queues.Add(q.Queue, arrow(fmt.Sprint(q.From.Queued), fmt.Sprint(q.To.Queued)),
			arrow(fmt.Sprint(q.From.Held), fmt.Sprint(q.To.Held)), arrow(wait(q.From), wait(q.To)))
	}
	v.Acts = frame.NewDid(b.Acts, now)
}
