"""EAGLE-1, EAGLE-2 and EAGLE-3: a small head that drafts from the target's own hidden states."""
