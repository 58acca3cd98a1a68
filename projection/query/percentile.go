package query

// Percentile returns the smallest of sorted values that at least so many percent of them do not exceed, the
// nearest rank: of two values the median is the smaller one, and of a hundred the 99th percentile the second
// largest. It returns the zero value if there are none.
func Percentile[T any](sorted []T, percent int) (value T) {
	if len(sorted) == 0 {
		return value
	}
	return sorted[max((len(sorted)*percent+99)/100-1, 0)]
}
