package print

import (
	"fmt"
	"time"

	"jobledger/cmd/jobledger/internal/words"
	"jobledger/commands/archive"
)

// Archive is a table of the segments of a ledger's archive and their files.
func Archive(files []archive.File, zone *time.Location) *words.Table {
	t := &words.Table{Columns: []words.Column{{Title: "EVENTS"}, {Title: "FROM"}, {Title: "TO", Drop: 2},
		{Title: "JOBS", Right: true, Drop: 3}, {Title: "SIZE", Right: true, Drop: 1}, {Title: "FILE", State: true},
		{Title: "PATH", Least: 12}, {Title: "DETAIL", Least: 8}}}
	for _, f := range files {
		t.Add(fmt.Sprintf("%d–%d", f.Lo+1, f.Hi), words.Millis(f.FirstAt.In(zone)),
			words.Millis(f.LastAt.In(zone)),
			fmt.Sprint(f.Jobs), words.ByteSize(f.Bytes), string(f.State), f.Path, f.Detail)
	}
	return t
}

// ArchiveJSON is a segment and its file, for programs.
type ArchiveJSON struct {
	Lo        int64             `json:"lo"`
	Hi        int64             `json:"hi"`
	Pos       int64             `json:"pos"` // of the archived event
	At        string            `json:"at"`
	FirstAt   string            `json:"first_at"`
	LastAt    string            `json:"last_at"`
	Jobs      int64             `json:"jobs"`
	CarriedIn int64             `json:"carried_in"`
	Bytes     int64             `json:"bytes"`
	SHA256    string            `json:"sha256"`
	Root      string            `json:"root"`
	Parts     map[string]string `json:"parts"` // digests; null: not described yet
	Path      string            `json:"path"`
	State     archive.State     `json:"state"`
	Detail    *string           `json:"detail"`
}

// NewArchiveJSON is f for programs.
func NewArchiveJSON(f archive.File) ArchiveJSON {
	return ArchiveJSON{Lo: f.Lo, Hi: f.Hi, Pos: f.Pos, At: words.JSONTime(f.At),
		FirstAt: words.JSONTime(f.FirstAt),
		LastAt:  words.JSONTime(f.LastAt), Jobs: f.Jobs, CarriedIn: f.CarriedIn, Bytes: f.Bytes, SHA256: f.SHA256,
		Root: f.Root, Parts: f.Parts, Path: f.Path, State: f.State, Detail: words.TextOrNull(f.Detail)}
}
