package faultvfs

import (
	"maps"
	"slices"
)

// Record is what SQLite asked of a disk that changes it, in order.
type Record struct {
	base  map[string][]byte // what was there before, by name; durable
	ops   []op
	names map[string]int // the files as they are now
	files int
}

type kind uint8

const (
	create kind = iota
	unlink
	syncFolder
	written
	truncated
	synced
	syncFailed
)

// op is one entry of a Record.
type op struct {
	kind   kind
	file   int    // its number: a name that is given again means another file
	name   string // of create and unlink
	offset int64  // of what was written, or the size to which it was truncated
	data   []byte
}

func newRecord(files map[string][]byte) Record {
	r := Record{base: files, names: make(map[string]int)}
	for _, name := range slices.Sorted(maps.Keys(files)) { // as a Replay numbers them
		r.names[name] = r.files
		r.files++
	}
	return r
}

func (r *Record) add(o op) { r.ops = append(r.ops, o) }

// opened returns the number of the file with this name, which may be new.
func (r *Record) opened(name string) int {
	file, ok := r.names[name]
	if !ok {
		file = r.files
		r.files++
		r.names[name] = file
		r.add(op{kind: create, file: file, name: name})
	}
	return file
}

func (r *Record) unlinked(name string) {
	if file, ok := r.names[name]; ok {
		delete(r.names, name)
		r.add(op{kind: unlink, file: file, name: name})
	}
}

// Len returns how many operations there are.
func (r *Record) Len() int { return len(r.ops) }

// Written returns how many writes there were to the file with this name from one moment to another.
func (r *Record) Written(name string, from, to int) (n int) {
	files := make(map[int]bool)
	for i, o := range r.ops[:to] {
		switch {
		case o.kind == create && o.name == name:
			files[o.file] = true
		case o.kind == written && files[o.file] && i >= from:
			n++
		}
	}
	return n
}
