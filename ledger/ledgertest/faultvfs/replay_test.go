package faultvfs

import (
	"bytes"
	"maps"
	"math/rand/v2"
	"testing"
)

// recorded is a hand-written Record of a folder with the file "old".
func recorded(ops ...op) *Record {
	r := newRecord(map[string][]byte{"old": []byte("0000")})
	r.ops = ops
	return &r
}

var (
	writeA       = op{kind: written, file: 0, offset: 0, data: []byte("aa")}
	writeB       = op{kind: written, file: 0, offset: 3, data: []byte("bbb")}
	cut1         = op{kind: truncated, file: 0, offset: 1}
	sync0        = op{kind: synced, file: 0}
	failed0      = op{kind: syncFailed, file: 0}
	folder       = op{kind: syncFolder}
	unlink0      = op{kind: unlink, file: 0, name: "old"}
	create1      = op{kind: create, file: 1, name: "new"}
	write1       = op{kind: written, file: 1, data: []byte("11")}
	sync1        = op{kind: synced, file: 1}
	createAgain1 = op{kind: create, file: 1, name: "old"}
)

func TestReplayKnowsWhatIsDurable(t *testing.T) {
	all := func(string) bool { return true }
	for name, c := range map[string]struct {
		ops     []op
		lie     Lie
		all     map[string]string // what is left if everything is lost that can be
		nothing map[string]string // what is left if nothing is lost
	}{
		"nothing synced": {[]op{writeA, writeB}, Lie{}, map[string]string{"old": "0000"},
			map[string]string{"old": "aa0bbb"}},
		"synced in between": {[]op{writeA, sync0, writeB}, Lie{}, map[string]string{"old": "aa00"},
			map[string]string{"old": "aa0bbb"}},
		"truncated": {[]op{writeA, sync0, cut1}, Lie{}, map[string]string{"old": "aa00"},
			map[string]string{"old": "a"}},
		"truncated and synced": {[]op{cut1, sync0, writeB}, Lie{}, map[string]string{"old": "0"},
			map[string]string{"old": "0\x00\x00bbb"}},
		"another file's sync": {[]op{create1, folder, writeA, write1, sync1}, Lie{},
			map[string]string{"old": "0000", "new": "11"}, map[string]string{"old": "aa00", "new": "11"}},
		"a name that is not synced": {[]op{create1, write1, sync1}, Lie{}, map[string]string{"old": "0000"},
			map[string]string{"old": "0000", "new": "11"}},
		"an unlink that is lost":   {[]op{unlink0}, Lie{}, map[string]string{"old": "0000"}, map[string]string{}},
		"an unlink that is synced": {[]op{unlink0, folder}, Lie{}, map[string]string{}, map[string]string{}},
		"a name used again": {[]op{unlink0, createAgain1, write1, sync1, folder, writeA, sync0}, Lie{},
			map[string]string{"old": "11"}, map[string]string{"old": "11"}},
		"a failed sync": {[]op{writeA, failed0, sync0}, Lie{}, map[string]string{"old": "0000"},
			map[string]string{"old": "0000"}},
		"a write after a failed sync": {[]op{writeA, failed0, writeA, sync0}, Lie{},
			map[string]string{"old": "aa00"},
			map[string]string{"old": "aa00"}},
		"an ignored sync": {[]op{writeA, sync0}, Lie{Syncs: all}, map[string]string{"old": "0000"},
			map[string]string{"old": "aa00"}},
		"a sync ignored later": {[]op{writeA, sync0}, Lie{Syncs: all, From: 2}, map[string]string{"old": "aa00"},
			map[string]string{"old": "aa00"}},
		"an ignored sync of the folder": {[]op{unlink0, folder}, Lie{Folder: true},
			map[string]string{"old": "0000"},
			map[string]string{}},
	} {
		t.Run(name, func(t *testing.T) {
			r := recorded(c.ops...)
			for loss, want := range map[Loss]map[string]string{LoseAll: c.all, LoseNothing: c.nothing} {
				p := r.NewReplay(c.lie, true)
				p.Go(r.Len())
				got := make(map[string]string)
				for name, content := range p.Crash(loss, rand.New(rand.NewPCG(1, 1))) {
					got[name] = string(content)
				}
				if !maps.Equal(got, want) {
					t.Errorf("%s is lost: got %q, want %q", loss, got, want)
				}
			}
			if string(r.base["old"]) != "0000" {
				t.Error("the record has changed")
			}
		})
	}
}

// A power cut during writes leaves some of the written sectors, each in its place.
func TestReplayLosesWholeSectors(t *testing.T) {
	first, second := bytes.Repeat([]byte{1}, 5*sector), bytes.Repeat([]byte{2}, 5*sector)
	r := recorded(op{kind: written, file: 0, data: first}, sync0, op{kind: written, file: 0, offset: 100,
		data: second[:2*sector]}, op{kind: written, file: 0, offset: 4 * sector, data: second[:sector]})
	seen := make(map[Loss]map[string]bool)
	for seed := range uint64(200) {
		for loss := range Losses {
			p := r.NewReplay(Lie{}, false)
			p.Go(r.Len())
			file := p.Crash(loss, rand.New(rand.NewPCG(seed, 0)))["old"]
			if len(file) != len(first) {
				t.Fatalf("%s: %d bytes", loss, len(file))
			}
			pattern := ""
			for _, at := range []int{0, 100, sector - 1, sector, 2*sector - 1, 2 * sector, 2*sector + 99,
				2*sector + 100, 4*sector - 1, 4 * sector, 5*sector - 1} {
				pattern += string('0' + file[at])
			}
			if seen[loss] == nil {
				seen[loss] = make(map[string]bool)
			}
			seen[loss][pattern] = true
		}
	}
	const none, firstOnly, lastOnly, both = "11111111111", "12222221111", "11111111122", "12222221122"
	want := map[Loss][]string{LoseNothing: {both}, LoseAll: {none}, LoseTail: {none, firstOnly, both},
		LoseSome: {none, firstOnly, lastOnly, both}}
	for loss, patterns := range want {
		if len(seen[loss]) != len(patterns) {
			t.Errorf("%s is lost: got %v, want %q", loss, seen[loss], patterns)
		}
		for _, pattern := range patterns {
			if !seen[loss][pattern] {
				t.Errorf("%s is lost: %q was never left", loss, pattern)
			}
		}
	}
	if n := len(seen[LoseSectors]); n != 16 { // three sectors of the first write, one of the second
		t.Errorf("%d patterns of lost sectors, want 16: %v", n, seen[LoseSectors])
	}
}
