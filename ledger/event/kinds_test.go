package event

import "testing"

// TestKindsSignsOfLife: what SQL selects by is made of the kinds that say that a process lived. One that is
// added to the registry is looked at here.
func TestKindsSignsOfLife(t *testing.T) {
	if got, want := KindNumbers(Kind.IsSignOfLife), "2, 3, 4, 5, 6, 11, 15, 29, 30"; got != want {
		t.Errorf("signs of life are %s, want %s", got, want)
	}
	for _, k := range Kinds() {
		if k.IsSignOfLife() && k.OfJob() == (k == KindWorkerStarted) {
			t.Errorf("%s: a sign of life, and of a job: %t", k, k.OfJob())
		}
	}
}
