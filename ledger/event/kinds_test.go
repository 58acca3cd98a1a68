package event

import "testing"

// TestKindsSignsOfLife: what SQL selects by is made of the kinds that say that a process lived. One that is
// added to the registry is looked at here.
func TestKindsSignsOfLife(t *testing.T) {
	if got, want := SQL("{kinds:signOfLife}"), "2, 3, 4, 5, 6, 11, 15, 29, 30, 35"; got != want {
		t.Errorf("signs of life are %s, want %s", got, want)
	}
	for _, k := range Kinds() {
		if k.IsSignOfLife() && k.OfJob() == (k == KindWorkerStarted) {
			t.Errorf("%s: a sign of life, and of a job: %t", k, k.OfJob())
		}
	}
}

func TestSQLNamesKindsAndStates(t *testing.T) {
	const text = `kind IN ({failed}, {reclaimed}) AND kind > {rareAfter} AND state = {state:blocked}
AND kind NOT IN ({kinds:keepsClaim}) AND data ->> '{}' = '{"a":1}'`
	const want = `kind IN (5, 7) AND kind > 5 AND state = 7
AND kind NOT IN (3, 30) AND data ->> '{}' = '{"a":1}'`
	if got := SQL(text); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for _, wrong := range []string{"{fialed}", "{state:failing}", "{kinds:all}", "{kind:failed}",
		"{state}"} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", wrong)
				}
			}()
			t.Log(SQL(wrong))
		}()
	}
}
