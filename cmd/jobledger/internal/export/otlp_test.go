package export

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"jobledger/commands"
	"jobledger/commands/commandstest"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
)

var update = flag.Bool("update", false, "rewrite the golden files in testdata")

// wireSpan is a Span of opentelemetry/proto/trace/v1/trace.proto, as the JSON encoding of OTLP has it: what
// this export may write of it, and no more.
type wireSpan struct {
	TraceID           string     `json:"traceId"`
	SpanID            string     `json:"spanId"`
	ParentSpanID      string     `json:"parentSpanId"`
	Name              string     `json:"name"`
	Kind              int        `json:"kind"`
	StartTimeUnixNano string     `json:"startTimeUnixNano"`
	EndTimeUnixNano   string     `json:"endTimeUnixNano"`
	Attributes        []wireAttr `json:"attributes"`
	Events            []struct {
		TimeUnixNano string     `json:"timeUnixNano"`
		Name         string     `json:"name"`
		Attributes   []wireAttr `json:"attributes"`
	} `json:"events"`
	Links []struct {
		TraceID string `json:"traceId"`
		SpanID  string `json:"spanId"`
	} `json:"links"`
	Status struct {
		Message string `json:"message"`
		Code    int    `json:"code"`
	} `json:"status"`

	resource map[string]string
}

type wireAttr struct {
	Key   string `json:"key"`
	Value struct {
		StringValue *string `json:"stringValue"`
		IntValue    *string `json:"intValue"`
	} `json:"value"`
}

// attributesOf returns attributes by name; it reports those that are not attributes.
func attributesOf(t *testing.T, list []wireAttr) map[string]string {
	t.Helper()
	all := make(map[string]string)
	for _, a := range list {
		_, twice := all[a.Key]
		switch v := a.Value; {
		case v.StringValue != nil && v.IntValue == nil:
			all[a.Key] = *v.StringValue
		case v.IntValue != nil && v.StringValue == nil:
			if _, err := strconv.ParseInt(*v.IntValue, 10, 64); err != nil {
				t.Error(err)
			}
			all[a.Key] = *v.IntValue
		default:
			t.Errorf("%s has no value, or two", a.Key)
		}
		if a.Key == "" || twice {
			t.Errorf("the name %q is there twice, or is none", a.Key)
		}
	}
	return all
}

func (s wireSpan) attributes(t *testing.T) map[string]string { return attributesOf(t, s.Attributes) }

// spansOf returns the lines of w, and the spans in them. It reports what is not valid.
func spansOf(t *testing.T, store *ledger.Store, w Window) (lines string, spans []wireSpan) {
	t.Helper()
	var out bytes.Buffer
	if err := OTLP(t.Context(), store, w, &out); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(out.String()) {
		var request struct {
			ResourceSpans []struct {
				Resource struct {
					Attributes []wireAttr `json:"attributes"`
				} `json:"resource"`
				ScopeSpans []struct {
					Scope struct {
						Name string `json:"name"`
					} `json:"scope"`
					Spans []wireSpan `json:"spans"`
				} `json:"scopeSpans"`
			} `json:"resourceSpans"`
		}
		d := json.NewDecoder(strings.NewReader(line))
		d.DisallowUnknownFields()
		if err := d.Decode(&request); err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, r := range request.ResourceSpans {
			resource := attributesOf(t, r.Resource.Attributes)
			if resource["service.name"] == "" || len(r.ScopeSpans) != 1 || len(r.ScopeSpans[0].Spans) == 0 {
				t.Errorf("resource %v with %d scopes", resource, len(r.ScopeSpans))
			}
			for _, s := range r.ScopeSpans[0].Spans {
				s.resource = resource
				spans = append(spans, s)
				n++
			}
		}
		if n == 0 || n > otlpSpans {
			t.Errorf("a line has %d spans", n)
		}
	}
	ids := make(map[string]bool)
	traceID, id := regexp.MustCompile(`^[0-9a-f]{32}$`), regexp.MustCompile(`^[0-9a-f]{16}$`)
	for _, s := range spans {
		begun, err := strconv.ParseUint(s.StartTimeUnixNano, 10, 64)
		ended, err2 := strconv.ParseUint(s.EndTimeUnixNano, 10, 64)
		valid := err == nil && err2 == nil && begun <= ended && traceID.MatchString(s.TraceID) &&
			s.TraceID != noTrace && id.MatchString(s.SpanID) && s.SpanID != noSpan && !ids[s.SpanID] &&
			(s.ParentSpanID == "" || id.MatchString(s.ParentSpanID)) && s.Kind >= kindClient &&
			s.Kind <= kindConsumer && (s.Status.Code == 0 || s.Status.Code == statusError) && s.Name != ""
		for _, l := range s.Links {
			valid = valid && traceID.MatchString(l.TraceID) && id.MatchString(l.SpanID)
		}
		for _, e := range s.Events {
			at, err := strconv.ParseUint(e.TimeUnixNano, 10, 64)
			valid = valid && err == nil && at >= begun && at <= ended && e.Name != ""
		}
		if ids[s.SpanID] = true; !valid {
			t.Errorf("not valid: %+v", s)
		}
		s.attributes(t)
	}
	return out.String(), spans
}

// The spans are those that the events say: each enqueued job, claim that ended and refused write once,
// whether they are written at once or window by window.
func TestSpansOfTheBadNight(t *testing.T) {
	t.Parallel()
	store, all := badNight(t)
	lines, spans := spansOf(t, store, all)
	if again, _ := spansOf(t, store, all); again != lines {
		t.Error("the same history has other spans")
	}
	want, got := make(map[string]int), make(map[string]int)
	for line, err := range store.Lines(t.Context(), ledger.Filter{Until: all.Until}, false) {
		if err != nil {
			t.Fatal(err)
		}
		switch kind := line.Kind(); {
		case kind == event.KindEnqueued, kind == event.KindRefused:
			want[kind.String()]++
		case kind.EndsClaim() && line.Attempt > 0:
			want[fmt.Sprintf("%s %t", kind, kind == event.KindFailed || kind == event.KindReclaimed)]++
		}
	}
	roots := make(map[string]string)
	for _, s := range spans {
		if s.Kind == kindProducer {
			roots[s.SpanID] = s.TraceID
		}
	}
	linked := 0
	for _, s := range spans {
		a, failed := s.attributes(t), s.Status.Code == statusError
		switch {
		case s.Kind == kindProducer:
			got["enqueued"]++
		case roots[s.ParentSpanID] != s.TraceID:
			t.Errorf("a span without its root: %+v", s)
		case s.Kind == kindClient:
			got["refused"]++
			to := slices.IndexFunc(spans, func(o wireSpan) bool {
				return o.SpanID == s.Links[0].SpanID && o.TraceID == s.Links[0].TraceID
			})
			if to >= 0 && spans[to].attributes(t)["jobledger.attempt"] == a["jobledger.attempt"] {
				linked++
			}
		default:
			got[fmt.Sprintf("%s %t", a["jobledger.outcome"], failed)]++
			if failed != (a["error.type"] != "") || s.resource["service.instance.id"] == "" {
				t.Errorf("the claim %+v", s)
			}
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(want) || linked != want["refused"] || linked == 0 {
		t.Errorf("got %v, want %v; %d refused writes have their claim", got, want, linked)
	}

	parts := []int64{0, 2158, all.Until}
	if ledgertest.All() {
		parts = []int64{0, 1, 700, 2158, 2159, 3000, all.Until}
	}
	var apart []wireSpan
	for i, until := range parts[1:] {
		_, some := spansOf(t, store, Window{After: parts[i], Until: until})
		apart = append(apart, some...)
	}
	sorted := func(list []wireSpan) (texts []string) {
		for _, s := range list {
			texts = append(texts, fmt.Sprintf("%+v", s.SpanID+s.Name+s.TraceID+s.ParentSpanID+s.EndTimeUnixNano)+
				fmt.Sprint(s.attributes(t), s.resource))
		}
		slices.Sort(texts)
		return texts
	}
	if !slices.Equal(sorted(apart), sorted(spans)) {
		t.Errorf("%d spans window by window, %d at once", len(apart), len(spans))
	}

	// A short window, with what was lost and refused there, to the byte.
	lines, _ = spansOf(t, store, Window{After: 2153, Until: 2165})
	var shown bytes.Buffer
	if err := json.Indent(&shown, []byte(lines), "", " "); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("testdata", "spans.json")
	if *update {
		if err := os.WriteFile(path, shown.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	written, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if shown.String() != string(written) {
		t.Errorf("%s differs; -update writes it. It is\n%s", path, shown.String())
	}
	verify(t, store)
}

// A job that came with a trace is part of that, with links to the span that it names, even if it had ended
// before the window began, and was retried. What no trace can be is left alone.
func TestSpansOfATrace(t *testing.T) {
	t.Parallel()
	s := commandstest.New(t)
	const trace, parent = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	ids := make(map[string]event.JobID)
	for key, tag := range map[string]string{
		"traced": "00-" + trace + "-" + parent + "-01", "zero": "00-" + noTrace + "-" + parent + "-01",
		"no parent": "00-" + trace + "-" + noSpan + "-01", "ff": "ff-" + trace + "-" + parent + "-01", "none": "",
	} {
		job := commands.Enqueue{Queue: "mail", Key: key, MaxAttempts: 1, Tags: map[string]string{"customer": "1"}}
		if tag != "" {
			job.Tags["traceparent"] = tag
		}
		done, err := s.Enqueue(t.Context(), "web", job)
		if err != nil {
			t.Fatal(err)
		}
		ids[key] = done[0].ID
	}
	work := func(n int) {
		t.Helper()
		for range n {
			job, err := s.Claim(t.Context(), commands.ClaimRequest{Queues: []string{"mail"},
				Worker: event.Worker{Name: "w1", Boot: "01KDY9FY88TH00000000000001", Host: "h", PID: 7}})
			if err != nil {
				t.Fatal(err)
			}
			s.Now = s.Now.Add(time.Second)
			failure := commands.Fail{Code: "smtp", Detail: "451 \x1b later"}
			if _, err := s.Fail(t.Context(), job[0], failure); err != nil {
				t.Fatal(err)
			}
		}
	}
	work(5)
	cut := s.Tail()
	again := commands.Retry{Reason: "again"}
	if _, err := s.Retry(t.Context(), "cli:ada@desk", ids["traced"], again); err != nil {
		t.Fatal(err)
	}
	work(1)
	check := func(spans []wireSpan, each int) {
		t.Helper()
		byJob := make(map[string]int)
		for _, span := range spans {
			a := span.attributes(t)
			byJob[a["messaging.message.id"]]++
			traced := a["messaging.message.id"] == string(ids["traced"])
			if traced != (span.TraceID == trace) || traced != (len(span.Links) == 1) ||
				traced && span.Links[0].SpanID != parent || a["jobledger.tag.traceparent"] != "" ||
				span.Kind == kindProducer && a["jobledger.tag.customer"] != "1" ||
				span.Kind == kindConsumer && (a["error.type"] != "smtp" || span.Status.Message != "451 \x1b later") {
				t.Errorf("%s: %+v", a["jobledger.key"], span)
			}
		}
		for _, n := range byJob {
			if n != each {
				t.Errorf("spans by job: %v", byJob)
			}
		}
	}
	_, spans := spansOf(t, s.Store, Window{Until: cut})
	check(spans, 2)
	_, spans = spansOf(t, s.Store, Window{After: cut, Until: s.Tail()})
	check(spans, 1)
	if len(spans) != 1 {
		t.Errorf("%d spans after it was retried", len(spans))
	}
}
