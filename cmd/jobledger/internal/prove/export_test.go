package prove

// Withdraw is withdraw, for tests.
var Withdraw = withdraw
