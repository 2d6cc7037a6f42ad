"""The PyPI package `obsigna`, another implementation of the receipts, for the tests.

    obsigna.py verify                    stdin: {"receipt": TEXT, "pem": TEXT} a line
                                         stdout: {"valid", "hash"} or {"valid": false, "error"} a line
    obsigna.py chain DB PEM_FILE CHAIN   stdout: what verify_stored_chain says of the chain
    obsigna.py emit SOCKET               stdin: arguments of DaemonEmitter.emit a line, and
                                         "session_id"; stdout: who sent them

It judges nothing: what should come out is known to the test that runs it.
"""

import json
import os
import sys
from pathlib import Path

from obsigna import DaemonEmitter, hash_raw_receipt, verify_raw
from obsigna.store import open_store, verify_stored_chain


def verify():
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            said = {
                "valid": verify_raw(asked["receipt"], asked["pem"]),
                "hash": hash_raw_receipt(asked["receipt"]),
            }
        except Exception as error:
            said = {"valid": False, "error": str(error)}
        print(json.dumps(said))


def chain(db, pem_file, chain_id):
    store = open_store(db)
    found = verify_stored_chain(store, chain_id, Path(pem_file).read_text())
    names = ["valid", "length", "status", "broken_at", "error"]
    print(json.dumps({name: getattr(found, name) for name in names}))
    store.close()


def emit(socket):
    for line in sys.stdin:
        arguments = json.loads(line)
        emitter = DaemonEmitter(socket_path=socket, session_id=arguments.pop("session_id"))
        emitter.emit(**arguments)
        emitter.close()
    print(json.dumps({"pid": os.getpid(), "uid": os.getuid(), "gid": os.getgid()}))


if __name__ == "__main__":
    commands = {"verify": verify, "chain": chain, "emit": emit}
    commands[sys.argv[1]](*sys.argv[2:])
