"""Result files of other programs: read into runs and results documents, written from our runs.

Each format has a module that reads it into plain records and, where other programs' tools are to read ours, one that
writes it. None needs torch; a tokenizer is loaded only where a command is given one.
"""
