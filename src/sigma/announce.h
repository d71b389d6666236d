#pragma once

// What announces that a test may hold: literals to look for first, and how often they are met.

#include <string>
#include <string_view>
#include <vector>

namespace ringfence::sigma {

// The share of events that are thought to have the (folded, not empty) text somewhere in a value.
double ShareOf(std::string_view literal);

// Literals, folded, of which one must be in every text that the expression matches: those that are
// met least. None when there is nothing to go by.
std::vector<std::string> Announcers(const std::string& regex);

// Bytes that a text which the expression matches has at least, as far as is obvious.
std::size_t LeastBytes(std::string_view regex);

}  // namespace ringfence::sigma
