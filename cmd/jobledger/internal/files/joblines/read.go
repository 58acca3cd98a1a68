package joblines

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/oklog/ulid/v2"

	"jobledger/cmd/jobledger/internal/fault"
	"jobledger/cmd/jobledger/internal/when"
	"jobledger/commands"
	"jobledger/commands/remote/wire"
	"jobledger/ledger/event"
	"jobledger/ledger/jsonscan"
)

// ChunkJobs is how many jobs a [Chunk] has at most: those of one transaction.
const ChunkJobs = 10_000

const (
	maxLine    = 8 << 20  // bytes; a payload of 1 MiB takes six times that where each byte is written as \u0000
	chunkBytes = 16 << 20 // of payloads per transaction, so that memory stays bounded
)

// Keys are the keys of a line, as a help text lists them.
const Keys = "queue, key, group, payload, tags, priority, run_at, delay, max_attempts, max_runtime, " +
	"backoff, version, requires, ref, after, before, hold, unique_while, on_duplicate, id, payload_base64"

// Reader reads jobs from lines.
type Reader struct {
	Defaults commands.Enqueue // what a line does not say; its tags join those of each line
	Now      time.Time        // from which delays count
	Names    *Names           // of the jobs of the lines so far; nil: a line cannot name another

	// Plain takes each line for a payload, as it stands, and not for JSON.
	Plain bool
	Null  bool // with Plain: each ends with a NUL, and not with a newline

	// Refresh reads on_duplicate replace as refresh, so that a job that has begun does not hold up the other
	// lines. [Chunk.Replace] says which lines it was.
	Refresh bool
}

// Chunk is some jobs and the numbers of their lines, from 1 on; it is never empty.
type Chunk struct {
	Jobs    []commands.Enqueue
	Lines   []int
	Replace []bool
}

// First returns the number of the first line.
func (c Chunk) First() int { return c.Lines[0] }

// Last returns the number of the last line.
func (c Chunk) Last() int { return c.Lines[len(c.Lines)-1] }

// Chunks yields the jobs, as many at a time as one transaction takes. Empty lines are passed over. It stops
// at the first line that is not a job, with an error that names it.
func (r Reader) Chunks(content io.Reader) iter.Seq2[Chunk, error] {
	return func(yield func(Chunk, error) bool) {
		lines := bufio.NewScanner(content)
		buffer := 64 << 10
		if rest, ok := content.(interface{ Len() int }); ok { // it is in memory: one job needs no more
			buffer = min(buffer, rest.Len()+1)
		}
		lines.Buffer(make([]byte, buffer), maxLine)
		if r.Plain {
			lines.Split(r.splitPlain)
		}
		var next Chunk
		size, n := 0, 0
		for lines.Scan() {
			n++
			text := lines.Bytes()
			if n == 1 && !r.Plain {
				text = bytes.TrimPrefix(text, []byte("\ufeff"))
			}
			if len(text) == 0 || !r.Plain && len(bytes.TrimSpace(text)) == 0 {
				continue
			}
			e, err := r.job(text)
			if err != nil {
				code, why, hint := fault.Explain(err)
				err = wire.InLine(n, wire.InField(FieldOf(err), fmt.Errorf("line %d: %s", n, why)))
				yield(Chunk{}, &fault.Error{Code: code, Err: err, Hint: hint})
				return
			}
			replace := r.Refresh && e.OnDuplicate == commands.ReplaceDuplicate
			if replace {
				e.OnDuplicate = commands.RefreshDuplicate
			}
			next.Jobs, next.Lines = append(next.Jobs, e), append(next.Lines, n)
			next.Replace = append(next.Replace, replace)
			if size += len(e.Payload); len(next.Jobs) == ChunkJobs || size >= chunkBytes {
				if !yield(next, nil) {
					return
				}
				next, size = Chunk{}, 0
			}
		}
		switch err := lines.Err(); {
		case errors.Is(err, bufio.ErrTooLong):
			yield(Chunk{}, fault.Usagef("line %d is longer than 8 MiB", n+1))
		case err != nil:
			yield(Chunk{}, fmt.Errorf("line %d: %w", n+1, err))
		case len(next.Jobs) > 0:
			yield(next, nil)
		}
	}
}

// FieldOf is the key of a line that err, of [Reader.Job], is about; "" if it is not about a key.
func FieldOf(err error) string {
	in, _ := wire.InputOf(err)
	return in.Field
}

// Job reads one line, which without Names may name no other.
func (r Reader) Job(line []byte) (commands.Enqueue, error) { return r.job(line) }

// splitPlain is [bufio.ScanLines] that leaves a carriage return where it is, or with Null ends at a NUL.
func (r Reader) splitPlain(data []byte, atEOF bool) (advance int, token []byte, err error) {
	end := byte('\n')
	if r.Null {
		end = 0
	}
	if i := bytes.IndexByte(data, end); i >= 0 {
		return i + 1, data[:i], nil
	}
	if atEOF && len(data) > 0 {
		return len(data), data, nil
	}
	return 0, nil, nil
}

// job reads one line. Null is as if the key were not there, save for the payload.
func (r Reader) job(line []byte) (commands.Enqueue, error) {
	e := r.Defaults
	e.Tags = make(map[string]string, len(r.Defaults.Tags))
	maps.Copy(e.Tags, r.Defaults.Tags)
	if r.Plain {
		e.Payload = bytes.Clone(line)
		return e, e.Check()
	}
	if !utf8.Valid(line) {
		return e, fault.Usagef("not UTF-8")
	}
	if err := notObject(line); err != nil {
		return e, err
	}
	seen := make([]string, 0, 8)
	for key, value := range jsonscan.All(line) {
		if slices.Contains(seen, key) {
			return e, wire.InField(key, fault.Usagef("the key %q is given twice", key))
		}
		seen = append(seen, key)
		if string(value) == "null" && key != "payload" {
			continue
		}
		if err := r.field(&e, key, value); err != nil {
			return e, wire.InField(key, err)
		}
	}
	has := func(key string) bool { return slices.Contains(seen, key) }
	switch {
	case has("payload") && has("payload_base64"):
		return e, wire.InField("payload_base64", fault.Usagef("payload and payload_base64 cannot be combined"))
	case has("id") && has("ref"):
		return e, wire.InField("ref", fault.Usagef("id and ref cannot be combined"))
	case has("run_at") && has("delay"):
		return e, wire.InField("delay", fault.Usagef("run_at and delay cannot be combined"))
	case e.Queue == "":
		return e, wire.InField("queue", fault.Usagef("no queue, neither here nor for all lines"))
	}
	return e, e.Check()
}

func (r Reader) field(e *commands.Enqueue, key string, value []byte) (err error) {
	text := ""
	switch key {
	case "queue", "key", "group", "run_at", "delay", "max_runtime", "backoff", "version", "ref",
		"unique_while", "on_duplicate", "id", "payload_base64":
		if text, err = jsonscan.Text(value); err != nil {
			return fault.Usagef("%s: %s is not a string%s", key, brief(value), map[string]string{
				"delay": ` such as "90s"`, "max_runtime": ` such as "90s"`}[key])
		}
	}
	switch key {
	case "queue", "key", "group", "version", "ref", "unique_while", "on_duplicate", "id":
		if text == "" {
			return fault.Usagef("%s is empty; leave it out instead", key)
		}
	}
	if key != "payload" || value[0] == '"' { // of other JSON as payload the text is kept
		if err := event.CheckStrings(value); err != nil {
			return fault.Usagef("%s: %w", key, err)
		}
	}
	switch key {
	case "queue":
		e.Queue = text
	case "key":
		e.Key = text
	case "group":
		e.Group = text
	case "version":
		e.Version = text
	case "unique_while":
		e.UniqueWhile = text
	case "on_duplicate":
		e.OnDuplicate = text
	case "payload":
		if text, notText := jsonscan.Text(value); notText == nil {
			e.Payload = []byte(text)
		} else {
			e.Payload = bytes.Clone(value)
		}
	case "payload_base64":
		if e.Payload, err = base64.StdEncoding.DecodeString(text); err != nil {
			return fault.Usagef("payload_base64: %w", err)
		}
	case "id":
		id, parseErr := ulid.ParseStrict(text)
		if parseErr != nil {
			return fault.Usagef("id: %.60q is not a ULID", text)
		}
		e.ID = id.String()
	case "tags":
		err = addTags(e.Tags, value)
	case "requires":
		e.Requires = nil
		if json.Unmarshal(value, &e.Requires) != nil {
			return fault.Usagef("requires: %s is not a list of strings", brief(value))
		}
		err = commands.ReservedLabel("requires", e.Requires)
	case "priority":
		e.Priority, err = wholeValue(key, value, -commands.MaxPriority, commands.MaxPriority)
	case "max_attempts":
		e.MaxAttempts, err = wholeValue(key, value, 1, commands.MaxMaxAttempts)
	case "run_at":
		e.RunAt, err = when.ReadNext(key, text, r.Now)
	case "delay":
		var delay time.Duration
		delay, err = durationValue(key, text, 0, true)
		e.RunAt = r.Now.Add(delay)
	case "ref":
		err = r.Names.add(e, text)
	case "after":
		e.After, err = r.dependencies(key, value)
	case "before":
		e.Before, err = r.dependencies(key, value)
	case "hold":
		if json.Unmarshal(value, &e.Hold) != nil {
			return fault.Usagef("hold: %s is neither true nor false", brief(value))
		}
	case "backoff":
		if e.Backoff, err = when.ParseBackoff(text); err != nil {
			return fault.Usagef("backoff: %w", err)
		}
	case "max_runtime":
		e.MaxRuntime, err = durationValue(key, text, time.Millisecond, false)
	default:
		return fault.Usagef("unknown key %s; allowed: %s", brief(strconv.AppendQuote(nil, key)), Keys)
	}
	return err
}

// addTags reads an object of tags into tags, which may have been given by flags. A name that is there
// twice would lose one of its values, and null is not a value.
func addTags(tags map[string]string, value json.RawMessage) error {
	if value[0] != '{' {
		return fault.Usagef("tags: %s is not an object with strings as values", brief(value))
	}
	seen := make(map[string]bool)
	for name, raw := range jsonscan.All([]byte(value)) {
		text, err := jsonscan.Text(raw)
		switch {
		case err != nil:
			return fault.Usagef("tags: the value of %q is not a string", name)
		case seen[name]:
			return fault.Usagef("tags: %q is given twice", name)
		}
		seen[name], tags[name] = true, text
	}
	return nil
}

// Tags reads pairs NAME=VALUE. name says in errors what they are called.
func Tags(name string, pairs []string) (map[string]string, error) {
	tags := make(map[string]string, len(pairs))
	for _, pair := range pairs {
		tag, value, ok := strings.Cut(pair, "=")
		_, twice := tags[tag]
		switch {
		case !ok:
			return nil, fault.Usagef("%s: %.40q is not NAME=VALUE", name, pair)
		case twice:
			return nil, fault.Usagef("%s: %.40q is given twice", name, tag)
		}
		tags[tag] = value
	}
	return tags, nil
}

// brief shortens a value for an error.
func brief(value json.RawMessage) string {
	if len(value) > 40 {
		return strings.ToValidUTF8(string(value[:40]), "") + "…"
	}
	return string(value)
}

func wholeValue(key string, value json.RawMessage, lo, hi int) (int, error) {
	n, err := strconv.Atoi(string(value))
	if err != nil || n < lo || n > hi {
		return 0, fault.Usagef("%s: %s is not a whole number from %d to %d", key, brief(value), lo, hi)
	}
	return n, nil
}

func durationValue(key, text string, lo time.Duration, allowZero bool) (time.Duration, error) {
	return when.ReadDuration(key, text, lo, commands.MaxRunTime, allowZero)
}

// notObject says what is wrong with a line that is not one JSON object; nil: nothing is.
func notObject(line []byte) error {
	start := bytes.TrimLeft(line, " \t\r\n")
	isObject := bytes.HasPrefix(start, []byte("{"))
	if isObject && json.Valid(line) {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(line))
	switch err := d.Decode(new(json.RawMessage)); {
	case !isObject:
		return fault.Usagef("not a JSON object")
	case errors.Is(err, io.ErrUnexpectedEOF):
		return fault.Usagef("not a JSON object: it breaks off")
	case err != nil:
		return fault.Usagef("not a JSON object: %w", err)
	}
	return fault.Usagef("text after the JSON object; a line holds one")
}
