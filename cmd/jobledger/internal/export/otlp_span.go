package export

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"jobledger/cmd/jobledger/internal/words"
	"jobledger/commands/worker"
	"jobledger/ledger/event"
	"jobledger/projection/follow"
)

// spanSystem is the messaging.system of spans, the namespace of their services and the name of their scope.
const spanSystem = "jobledger"

// The ids that no trace and no span may have.
const (
	noTrace = "00000000000000000000000000000000"
	noSpan  = "0000000000000000"
)

// Values of SpanKind and of StatusCode.
const (
	kindClient   = 3
	kindProducer = 4
	kindConsumer = 5
	statusError  = 2
)

// span is a Span of OTLP. 64-bit numbers are text in its JSON, ids are hexadecimal.
type span struct {
	TraceID    string          `json:"traceId"`
	SpanID     string          `json:"spanId"`
	Parent     string          `json:"parentSpanId,omitempty"`
	Name       string          `json:"name"`
	Kind       int             `json:"kind"`
	Start      string          `json:"startTimeUnixNano"`
	End        string          `json:"endTimeUnixNano"`
	Attributes []spanAttribute `json:"attributes"`
	Events     []spanEvent     `json:"events,omitempty"`
	Links      []spanLink      `json:"links,omitempty"`
	Status     *spanStatus     `json:"status,omitempty"` // nil: unset, as where all went well
}

type spanAttribute struct {
	Key   string    `json:"key"`
	Value spanValue `json:"value"`
}

// spanValue has one of its fields.
type spanValue struct {
	Text   *string `json:"stringValue,omitempty"`
	Number string  `json:"intValue,omitempty"`
}

type spanEvent struct {
	Time       string          `json:"timeUnixNano"`
	Name       string          `json:"name"`
	Attributes []spanAttribute `json:"attributes,omitempty"`
}

type spanLink struct {
	TraceID string `json:"traceId"`
	SpanID  string `json:"spanId"`
}

type spanStatus struct {
	Message string `json:"message,omitempty"`
	Code    int    `json:"code"`
}

func textAttribute(key, value string) spanAttribute {
	return spanAttribute{Key: key, Value: spanValue{Text: &value}}
}

func numberAttribute(key string, value int64) spanAttribute {
	return spanAttribute{Key: key, Value: spanValue{Number: strconv.FormatInt(value, 10)}}
}

// texts are the pairs, alternating names and values, that have a value.
func texts(pairs ...string) (list []spanAttribute) {
	for pair := range slices.Chunk(pairs, 2) {
		if pair[1] != "" {
			list = append(list, textAttribute(pair[0], pair[1]))
		}
	}
	return list
}

// nanos returns a moment as OTLP has it.
func nanos(t time.Time) string { return strconv.FormatInt(t.UnixNano(), 10) }

// spanID derives an id of a span. Lease tokens do not end up in it, since it is sent to others.
func spanID(words ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(words, " ")))
	return hex.EncodeToString(sum[:8])
}

func spanOfClaim(token string) string { return spanID("claim", token) }
func spanOfJob(id event.JobID) string { return spanID("job", string(id)) }

// newSpan returns a span of a job at a moment, with what all spans have.
func newSpan(id event.JobID, j spanJob, kind int, operation, name string, at time.Time) span {
	s := span{Kind: kind, Name: strings.TrimSpace(name + " " + j.queue), Start: nanos(at), End: nanos(at)}
	s.Attributes = texts("messaging.system", spanSystem, "messaging.operation.type", operation,
		"messaging.operation.name", name, "messaging.destination.name", j.queue, "messaging.message.id", string(id))
	if j.traceparent != "" {
		s.TraceID = j.traceparent[3:35]
		s.Links = append(s.Links, spanLink{s.TraceID, j.traceparent[36:52]})
		return s
	}
	number, err := ulid.ParseStrict(string(id))
	if s.TraceID = hex.EncodeToString(number[:]); err != nil || s.TraceID == noTrace {
		sum := sha256.Sum256([]byte(id))
		s.TraceID = hex.EncodeToString(sum[:16])
	}
	return s
}

func enqueuedSpan(e event.Event, j spanJob) span {
	b := e.Body.(*event.Enqueued)
	s := newSpan(e.Job, j, kindProducer, "send", "enqueue", e.At)
	s.SpanID = spanOfJob(e.Job)
	s.Attributes = append(s.Attributes, numberAttribute("messaging.message.body.size", b.PayloadBytes),
		numberAttribute("jobledger.pos", e.Pos), textAttribute("jobledger.actor", e.Actor))
	s.Attributes = append(s.Attributes, texts("jobledger.key", b.Key, "jobledger.group", b.Group,
		"jobledger.schedule", b.Schedule, "jobledger.version", b.Version)...)
	if b.RunAt.After(e.At) {
		s.Attributes = append(s.Attributes, textAttribute("jobledger.run_at", words.JSONTime(b.RunAt)))
	}
	for _, name := range slices.Sorted(maps.Keys(b.Tags)) {
		if name != worker.TraceTag {
			s.Attributes = append(s.Attributes, textAttribute("jobledger.tag."+name, b.Tags[name]))
		}
	}
	return s
}

// claimSpan returns the span of a claim that has ended.
func claimSpan(c *follow.Claim, j spanJob) span {
	end := endOf(c)
	s := newSpan(c.Job, j, kindConsumer, "process", "process", c.ClaimedAt)
	s.SpanID, s.Parent, s.End = spanOfClaim(c.End.Token), spanOfJob(c.Job), nanos(end.at)
	s.Attributes = append(s.Attributes, numberAttribute("jobledger.pos", c.Pos),
		numberAttribute("jobledger.attempt", int64(c.Attempt)), textAttribute("jobledger.worker", c.Worker.Name),
		textAttribute("jobledger.outcome", end.outcome), textAttribute("jobledger.state", c.End.To.String()),
		numberAttribute("jobledger.heartbeats", int64(c.Heartbeats)))
	s.Attributes = append(s.Attributes, texts("jobledger.key", j.key, "jobledger.signal", end.signal,
		"error.type", end.errorCode)...)
	if end.exitCode != nil {
		s.Attributes = append(s.Attributes, numberAttribute("process.exit.code", int64(*end.exitCode)))
	}
	switch b := c.End.Body.(type) {
	case *event.Failed:
		s.Status = &spanStatus{Message: b.ErrorDetail, Code: statusError}
	case *event.Reclaimed:
		s.Status = &spanStatus{Message: "the claim was lost: " + b.Reason, Code: statusError}
		if !c.LastHeartbeat.IsZero() {
			s.Events = append(s.Events, spanEvent{Time: nanos(c.LastHeartbeat), Name: "last heartbeat"})
		}
		if b.LeaseUntil.Before(end.at) {
			s.Events = append(s.Events, spanEvent{Time: nanos(b.LeaseUntil), Name: "lease ended"})
		}
	case *event.Cancelled:
		s.Attributes = append(s.Attributes, texts("jobledger.reason", b.Reason, "jobledger.actor", c.End.Actor)...)
	case *event.Released:
		s.Attributes = append(s.Attributes, texts("jobledger.reason", b.Reason)...)
	}
	return s
}

func refusedSpan(e event.Event, j spanJob, b *event.Refused) span {
	operation := "settle"
	if b.Command == "heartbeat" {
		operation = ""
	}
	s := newSpan(e.Job, j, kindClient, operation, b.Command, e.At)
	s.SpanID, s.Parent = spanID("refused", string(e.Job), e.Token, b.Command), spanOfJob(e.Job)
	if e.Attempt > 0 {
		s.Links = append(s.Links, spanLink{s.TraceID, spanOfClaim(e.Token)})
	}
	s.Attributes = append(s.Attributes, numberAttribute("jobledger.pos", e.Pos),
		numberAttribute("jobledger.attempt", int64(e.Attempt)))
	s.Attributes = append(s.Attributes, texts("jobledger.worker", e.Worker.Name,
		"jobledger.offered_sha256", b.OfferedSHA256, "error.type", "refused")...)
	s.Status = &spanStatus{Message: b.Why, Code: statusError}
	return s
}

// spanResource says where spans come from. A trace viewer lists services, which are the same for all of their
// instances: a queue is one, and each worker process an instance of it.
func spanResource(queue string, w event.Worker) []spanAttribute {
	list := texts("service.name", cmp.Or(queue, "unknown_service"), "service.namespace", spanSystem,
		"service.instance.id", w.Boot, "service.version", w.Version, "host.name", w.Host)
	if w.PID != 0 {
		list = append(list, numberAttribute("process.pid", int64(w.PID)))
	}
	return list
}

// spanLine returns groups as a request.
func spanLine(groups []*spanGroup) []byte {
	type scope struct {
		Name string `json:"name"`
	}
	type scopeSpans struct {
		Scope scope  `json:"scope"`
		Spans []span `json:"spans"`
	}
	type resource struct {
		Attributes []spanAttribute `json:"attributes"`
	}
	type resourceSpans struct {
		Resource resource     `json:"resource"`
		Scopes   []scopeSpans `json:"scopeSpans"`
	}
	var request struct {
		Resources []resourceSpans `json:"resourceSpans"`
	}
	for _, g := range groups {
		request.Resources = append(request.Resources, resourceSpans{resource{spanResource(g.queue, g.worker)},
			[]scopeSpans{{scope{spanSystem}, g.spans}}})
	}
	line, err := json.Marshal(request)
	if err != nil { // impossible: it is texts and numbers
		line = []byte("{}")
	}
	return words.EscapeJSON(line)
}
