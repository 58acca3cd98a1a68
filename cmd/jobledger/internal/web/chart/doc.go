// Package chart draws numbers over time as SVG. Each picture has the same in words, and a [Chart] as a table
// too, so that it needs neither a script nor eyes.
//
//	c := chart.New("Depth", from, time.Minute, zone, "", chart.Series{Name: "ready", Values: ready})
//
// Files in reading order: chart.go, spark.go (a picture for the cell of a table), histogram.go.
//
// Held by TestHistogram here, and by TestPagesShowNumbersOfTheViews of the program.
package chart
