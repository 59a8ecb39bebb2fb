"""`dtlint server`: a language server over standard input and output.

It is written on the standard library. pygls 2.1 with lsprotocol gives types to the protocol, and takes 260 ms of CPU and five
packages to import it, where all that stands here takes 100 ms. The protocol is the smaller part: what is hard, to read code
between two keystrokes and to leave off when the next comes, neither helps with.

One process talks to the editor and never reads code (session.py). Another reads it, and is a tree of processes that fork
from one another (processes.py): what a file imports is read once and kept, each edit is read in a process of its own that
begins from there, and an edit that is overtaken by the next is killed, not waited for.

One edit on its way: the message (wire.py) changes a buffer (buffers.py); when no other came for a moment, a task is made of
it (tasks.py) and sent to the reading process; that answers with diagnostics, then with what each expression is, then with
what the programs of the project show. Each answer that is still about the present text is kept beside the buffer, and put
into the words of the protocol: diagnostics.py, actions.py, hints.py.
"""
