package frame

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"jobledger/cmd/jobledger/internal/web/api"
	"jobledger/cmd/jobledger/internal/web/view"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/ledger"
	"jobledger/projection"
	"jobledger/projection/status"
)

// markView is the marks of one kind on the bar of moments, as one path.
type markView struct {
	Kind, Path string
}

// markNames are the kinds of moments for people, singular and plural.
var markNames = map[string][2]string{
	"refused":   {"write that came too late", "writes that came too late"},
	"failed":    {"job given up", "jobs given up"},
	"reclaimed": {"job taken back", "jobs taken back"}, "restored": {"restore", "restores"},
	"rebuilt": {"rebuild", "rebuilds"}, "queue_paused": {"queue paused", "queues paused"},
	"queue_resumed": {"queue resumed", "queues resumed"}, "version": {"new version", "new versions"},
}

// addMarks adds what the bar of moments shows.
func (f *Frame) addMarks(p *Site, query url.Values, at func(pos int64) string) {
	paths := make(map[string]*strings.Builder)
	found, counts := p.Moments.Columns(api.MomentColumns, f.Tail)
	for _, m := range found {
		b := paths[m.Kind]
		if b == nil {
			b = new(strings.Builder)
			paths[m.Kind] = b
		}
		y, height := 6, 10
		if m.Kind == "refused" || m.Kind == "reclaimed" {
			y, height = 2, 18
		}
		fmt.Fprintf(b, "M%d %dv%d", 1000*m.Pos/max(f.Tail, 1), y, height)
	}
	var texts []string
	for _, kind := range view.MomentKinds() {
		if b := paths[kind]; b != nil {
			f.Marks = append(f.Marks, markView{kind, b.String()})
		}
		if counts[kind] > 0 {
			texts = append(texts, fmt.Sprintf("%d %s", counts[kind],
				words.Plural(int64(counts[kind]), markNames[kind][0], markNames[kind][1])))
		}
	}
	f.MarksText = strings.Join(texts, ", ")
	if f.MarksText == "" {
		f.MarksText = "nothing"
	}
	f.Here = int(1000 * f.Pos / max(f.Tail, 1))
	before, after := p.Moments.Around(f.Pos)
	if before.Pos > 0 {
		f.Before, f.Trouble = at(before.Pos), before.At.In(p.Now().Location()).Format("15:04")
	}
	if after.Pos > 0 {
		f.After = at(after.Pos)
	}
}

// verifiedView is what the foot of each page says about verification.
type verifiedView struct {
	Text string
	Bad  bool
	When Age
}

// Age is a moment whose age a script shows and renews.
type Age struct {
	At  string // for people; "": there was none
	UTC string
}

func AgeOf(t time.Time, zone *time.Location) Age {
	return Age{words.Time(t.In(zone)), Stamp(t)}
}

func verifiedText(v view.Verification, p *Site) verifiedView {
	switch {
	case len(v.Findings) > 0:
		return verifiedView{Text: "verify found " + words.Count(int64(len(v.Findings)), "defect"), Bad: true}
	case v.Err != nil:
		return verifiedView{Text: "the last check could not be carried out", Bad: true}
	case v.At.IsZero():
		return verifiedView{Text: "not verified yet"}
	}
	text := fmt.Sprintf("verified to pos %d ✓", v.Until)
	if v.Since > 0 {
		text = fmt.Sprintf("verified pos %d to %d", v.Since+1, v.Until)
	}
	return verifiedView{Text: text, When: AgeOf(v.At, p.Now().Location())}
}

// copies are the ways to get what a page shows elsewhere.
func (f *Frame) copies(p *Site, r *http.Request, query url.Values) {
	q := api.Cloned(query)
	if params, ok := paramsOf[r.Pattern]; !ok || slices.Contains(params, "at") {
		q.Set("at", cmp.Or(f.At, fmt.Sprintf("pos:%d", f.Pos)))
	}
	if zonePattern().MatchString(f.Zone.Name) {
		q.Set(zoneParam, f.Zone.Name)
	}
	f.Link = p.Door.Prefix.At(r.URL.Path + "?" + q.Encode())
	f.Direct = "http://localhost" + p.Door.Prefix.Direct("")
}

// Curl is the command that asks the API for the same.
func (f Frame) Curl() string {
	if f.API == "" {
		return ""
	}
	address := f.Direct + f.API
	if f.At != "" && !strings.Contains(address, "at=") {
		sep := "?"
		if strings.Contains(address, "?") {
			sep = "&"
		}
		address += sep + url.Values{"at": {f.At}}.Encode()
	}
	return "curl --unix-socket SOCKET " + Quoted(address)
}

// addLedger adds which ledger it is, and of a page about now how many workers are silent.
func (f *Frame) addLedger(ctx context.Context, p *Site, tx *ledger.Tx, m Moment) error {
	id, err := projection.LedgerID(ctx, tx)
	if f.Foot.Ledger = id[:min(len(id), 8)]; err != nil || m.Given {
		return err
	}
	figures, _, err := p.Figures.Read(ctx, tx, p.Now())
	silent := int64(0)
	for _, w := range figures.Workers {
		if w.State == status.Silent {
			silent++
		}
	}
	if silent > 0 {
		f.Foot.Silent = words.Count(silent, "worker") + " silent"
	}
	f.addCounts(figures, p.Verifier.Last())
	return err
}
