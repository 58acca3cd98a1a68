package faultvfs

import (
	"maps"
	"slices"
)

// Record lists the operations that change a disk, in order.
type Record struct {
	base  map[string][]byte // the durable files at the start, by name
	ops   []op
	names map[string]int // the current files
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

// op is one operation of a Record.
type op struct {
	kind   kind
	file   int    // its number; a new file with the same name gets another one
	name   string // for create and unlink
	offset int64  // of the data written, or the size after a truncation
	data   []byte
}

func newRecord(files map[string][]byte) Record {
	r := Record{base: files, names: make(map[string]int)}
	for _, name := range slices.Sorted(maps.Keys(files)) { // in the order in which a Replay numbers them
		r.names[name] = r.files
		r.files++
	}
	return r
}

func (r *Record) add(o op) { r.ops = append(r.ops, o) }

// opened returns the number of the file with this name, and adds the file if it is new.
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

// Len returns the number of operations.
func (r *Record) Len() int { return len(r.ops) }

// Written returns how many writes to the file with this name there were between two times.
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
