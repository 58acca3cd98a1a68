package commands_test

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"jobledger/commands"
	"jobledger/ledger"
	"jobledger/ledger/ledgertest"
	"jobledger/projection"
	"jobledger/projection/claims"

	"pgregory.net/rapid"
)

// payloads returns the payloads of jobs, by which the claim tests name them.
func payloads(jobs []projection.Job) (names []string) {
	for _, j := range jobs {
		names = append(names, string(j.Payload))
	}
	return names
}

func limit(n int) func(*commands.ClaimRequest) {
	return func(r *commands.ClaimRequest) { r.Limit = n }
}

func from(queues ...string) func(*commands.ClaimRequest) {
	return func(r *commands.ClaimRequest) { r.Queues = queues }
}

func asVersion(v string, capabilities ...string) func(*commands.ClaimRequest) {
	return func(r *commands.ClaimRequest) { r.Version, r.Capabilities = v, capabilities }
}

// id returns the nth ULID of a test. They sort by n.
func id(n int) string { return fmt.Sprintf("01KDXYZAF8%016d", n) }

func TestClaimTakesWhatFitsInOrder(t *testing.T) {
	t.Parallel()
	type job = commands.Enqueue
	in := func(d time.Duration) time.Time { return ledgertest.Epoch.Add(d) }
	for _, test := range []struct {
		name  string
		jobs  []job // identified by their payloads
		pause []string
		ask   []func(*commands.ClaimRequest)
		want  []string
	}{
		{
			name: "priority, then run_at, then id",
			jobs: []job{
				{ID: id(9), Payload: []byte("id 9")}, {ID: id(3), Payload: []byte("id 3")},
				{ID: id(5), Payload: []byte("id 5")},
				{ID: id(1), RunAt: in(-time.Second), Payload: []byte("past")}, // is due at once
				{Priority: -100, Payload: []byte("last")}, {Priority: 100, Payload: []byte("first")},
				{Priority: 1, Payload: []byte("high")},
			},
			want: []string{"first", "high", "past", "id 3", "id 5", "id 9", "last"},
		},
		{
			name: "future jobs are skipped, however important",
			jobs: []job{{Priority: 100, RunAt: in(time.Microsecond), Payload: []byte("future")},
				{Payload: []byte("now")}, {RunAt: in(0), Payload: []byte("just now")}},
			want: []string{"now", "just now"},
		},
		{
			name: "a worker without a version takes jobs without a version",
			jobs: []job{{Version: "v1", Payload: []byte("v1")}, {Payload: []byte("any")}},
			want: []string{"any"},
		},
		{
			name: "a worker of a version takes its own and those without",
			jobs: []job{{Version: "v1", Payload: []byte("v1")}, {Payload: []byte("any")},
				{Version: "v2", Payload: []byte("v2")}, {Version: "v", Payload: []byte("v")}},
			ask:  []func(*commands.ClaimRequest){asVersion("v1")},
			want: []string{"v1", "any"},
		},
		{
			name: "every label must be a capability",
			jobs: []job{
				{Requires: []string{"gpu"}, Payload: []byte("gpu")},
				{Requires: []string{"gpu", "eu"}, Payload: []byte("gpu eu")},
				{Requires: []string{"eu", "gpu", "eu"}, Payload: []byte("eu gpu eu")},
				{Requires: []string{"gpu2"}, Payload: []byte("gpu2")},
				{Requires: []string{}, Payload: []byte("none")}, {Version: "v1", Requires: []string{"gpu"},
					Payload: []byte("v1 gpu")},
			},
			ask:  []func(*commands.ClaimRequest){asVersion("", "eu", "gpu", "arm")},
			want: []string{"gpu", "gpu eu", "eu gpu eu", "none"},
		},
		{
			name: "a job that does not fit blocks no other",
			jobs: []job{
				{Priority: 100, Requires: []string{"gpu"}, Payload: []byte("gpu")},
				{Priority: 99, Version: "v9", Payload: []byte("v9")},
				{Priority: 98, Queue: "other", Payload: []byte("other")}, {Priority: 97, RunAt: in(time.Hour),
					Payload: []byte("later")}, {Payload: []byte("mine")},
			},
			want: []string{"mine"},
		},
		{
			name: "several queues are merged by priority, run_at and id",
			jobs: []job{
				{Queue: "b", ID: id(2), Payload: []byte("b2")}, {Queue: "a", ID: id(3), Payload: []byte("a3")},
				{Queue: "b", ID: id(4), Payload: []byte("b4")},
				{Queue: "c", Priority: 1, Payload: []byte("c")}, {Queue: "a", ID: id(1), Payload: []byte("a1")},
				{Queue: "d", Priority: 50, Payload: []byte("d")},
			},
			ask:  []func(*commands.ClaimRequest){from("c", "b", "a", "b", "empty")},
			want: []string{"c", "a1", "b2", "a3", "b4"},
		},
		{
			name:  "a paused queue gives nothing, other queues do",
			jobs:  []job{{Queue: "a", Priority: 9, Payload: []byte("a")}, {Queue: "b", Payload: []byte("b")}},
			pause: []string{"a"},
			ask:   []func(*commands.ClaimRequest){from("a", "b")},
			want:  []string{"b"},
		},
		{
			name: "a queue is not confused with one of a longer name",
			jobs: []job{{Queue: "mail-2", Payload: []byte("mail-2")}, {Queue: "mail.x", Payload: []byte("mail.x")},
				{Queue: "mai", Payload: []byte("mai")}, {Queue: "mail", Payload: []byte("mail")}},
			want: []string{"mail"},
		},
		{
			name: "labels of every printable character keep lanes apart",
			jobs: []job{{Version: "~", Payload: []byte("~")}, {Version: "!", Payload: []byte("!")},
				{Requires: []string{"~", "!"}, Payload: []byte("both")}},
			ask:  []func(*commands.ClaimRequest){asVersion("~", "!", "~")},
			want: []string{"~", "both"},
		},
		{
			name: "the limit is one by default",
			jobs: []job{{ID: id(1), Payload: []byte("1")}, {ID: id(2), Payload: []byte("2")}},
			ask:  []func(*commands.ClaimRequest){limit(0)},
			want: []string{"1"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			q := newQueue(t)
			for i, j := range test.jobs {
				if j.Queue = cmp.Or(j.Queue, "mail"); j.ID == "" {
					j.ID = id(100 + i)
				}
				q.enqueue(j)
			}
			for _, name := range test.pause {
				if changed, err := q.Pause(t.Context(), "cli:test", name, ""); !changed || err != nil {
					t.Fatal(changed, err)
				}
			}
			if got := payloads(q.claim("w", append([]func(*commands.ClaimRequest){limit(100)},
				test.ask...)...)); !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestClaimMergesManyLanes(t *testing.T) {
	q := newQueue(t)
	var jobs []commands.Enqueue
	var want []string
	for i := range 1000 { // 100 lanes in round robin order, but one lane has all jobs up to 300
		lane := i % 100
		if i < 300 {
			lane = 42
		}
		jobs = append(jobs, commands.Enqueue{ID: id(i), Queue: "mail", Requires: []string{fmt.Sprint("lane", lane)},
			Payload: fmt.Append(nil, i)})
		want = append(want, fmt.Sprint(i))
	}
	if _, err := q.Enqueue(t.Context(), "cli:test", jobs...); err != nil {
		t.Fatal(err)
	}
	var able []string
	for lane := range 100 {
		able = append(able, fmt.Sprint("lane", lane))
	}
	for _, n := range []int{1, 7, 250, 500, 1000} {
		got := payloads(q.claim("w", asVersion("", able...), limit(n)))
		if n = min(n, len(want)); !slices.Equal(got, want[:n]) {
			t.Fatalf("a claim of %d: got %v, want %v", n, got, want[:n])
		}
		want = want[n:]
	}
	if got := q.claim("w", asVersion("", able...)); len(got) != 0 {
		t.Errorf("one too many: %+v", got)
	}
}

func TestReadySaysWhenToComeBack(t *testing.T) {
	q := newQueue(t)
	r := commands.ClaimRequest{Queues: []string{"mail"}, Worker: worker("w")}
	expect := func(wantReady bool, want time.Time) {
		t.Helper()
		ready, next, err := q.Ready(t.Context(), r)
		if err != nil || ready != wantReady || !next.Equal(want) {
			t.Errorf("got %t, %s, %v, want %t, %s", ready, next, err, wantReady, want)
		}
	}
	expect(false, time.Time{})
	q.enqueue(commands.Enqueue{Requires: []string{"gpu"}})
	expect(false, time.Time{})
	q.enqueue(commands.Enqueue{RunAt: q.Now.Add(time.Hour)})
	expect(false, q.Now.Add(time.Hour))
	q.enqueue(commands.Enqueue{RunAt: q.Now.Add(time.Minute), Priority: -5})
	expect(false, q.Now.Add(time.Minute))
	q.Now = q.Now.Add(time.Minute)
	expect(true, q.Now)
	if _, err := q.Pause(t.Context(), "cli:test", "mail", "lunch"); err != nil {
		t.Fatal(err)
	}
	expect(false, time.Time{})
}

// TestClaimSearchEqualsSortedFilter compares the search by lanes with the definition: filter all jobs,
// sort them, take the first.
func TestClaimSearchEqualsSortedFilter(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	queues, versions, labels := []string{"a", "a-", "b"}, []string{"", "v1", "v2"}, []string{"gpu", "eu", "arm"}
	round := 0
	rapid.Check(t, func(rt *rapid.T) {
		round++
		suffix := fmt.Sprint(round) // each round has its own queues in the same ledger
		n := rapid.IntRange(0, 40).Draw(rt, "jobs")
		order := rapid.Permutation(seq(n)).Draw(rt, "ids")
		jobs := make([]commands.Enqueue, n)
		for i := range jobs {
			jobs[i] = commands.Enqueue{
				ID:       id(round*1000 + order[i]),
				Queue:    rapid.SampledFrom(queues).Draw(rt, "queue") + suffix,
				Priority: rapid.IntRange(-2, 2).Draw(rt, "priority"),
				RunAt:    q.Now.Add(time.Duration(rapid.IntRange(0, 4).Draw(rt, "run_at")) * time.Second),
				Version:  rapid.SampledFrom(versions).Draw(rt, "version"),
				Requires: rapid.SliceOfN(rapid.SampledFrom(labels), 0, 2).Draw(rt, "requires"),
			}
		}
		if _, err := q.Enqueue(t.Context(), "cli:test", jobs...); err != nil {
			rt.Fatal(err)
		}
		want := claims.Want{Version: rapid.SampledFrom(versions).Draw(rt, "of version"),
			Capabilities: rapid.SliceOfDistinct(rapid.SampledFrom(labels), rapid.ID).Draw(rt, "capabilities")}
		for _, name := range rapid.SliceOfDistinct(rapid.SampledFrom(queues), rapid.ID).Draw(rt, "queues") {
			want.Queues = append(want.Queues, name+suffix)
		}
		now := q.Now.Add(time.Duration(rapid.IntRange(0, 4).Draw(rt, "now")) * time.Second)
		most := rapid.IntRange(1, 12).Draw(rt, "limit")

		var expected []string
		slices.SortFunc(jobs, func(a, b commands.Enqueue) int {
			return cmp.Or(b.Priority-a.Priority, a.RunAt.Compare(b.RunAt), cmp.Compare(a.ID, b.ID))
		})
		for _, j := range jobs {
			fits := slices.Contains(want.Queues, j.Queue) && !j.RunAt.After(now) &&
				(j.Version == "" || j.Version == want.Version)
			for _, label := range j.Requires {
				fits = fits && slices.Contains(want.Capabilities, label)
			}
			if fits && len(expected) < most {
				expected = append(expected, j.ID)
			}
		}
		var got []string
		err := q.Store.Read(t.Context(), func(tx *ledger.Tx) error {
			search, err := claims.Seek(t.Context(), tx, want, now, most)
			if err != nil {
				return err
			}
			found, err := search.Jobs(t.Context())
			for _, j := range found {
				got = append(got, string(j.ID))
			}
			return err
		})
		if err != nil || !slices.Equal(got, expected) {
			rt.Fatalf("got %v, %v\nwant %v", got, err, expected)
		}
	})
}

func seq(n int) []int {
	numbers := make([]int, n)
	for i := range numbers {
		numbers[i] = i
	}
	return numbers
}
