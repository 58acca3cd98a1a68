// Package draw draws who had which job: the owners of one job as a bar, the lanes of workers, and the gaps
// between heartbeats. Kinds of ends differ by their shapes, and each picture has its words.
//
// Files in reading order: bar.go (shapes and their legend), lanes.go, gaps.go.
//
// Held by TestSwimKeepsWhatWentWrong here, and by TestPagesShowNumbersOfTheViews of the program.
package draw
