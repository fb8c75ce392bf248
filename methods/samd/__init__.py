"""SAM-Decoding: the method, its dynamic automaton and the static one made from a corpus."""
