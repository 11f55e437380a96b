"""Runs the Python package msglc for the Go tests of this folder.

One request a line on standard input, one answer a line on standard output, both JSON. An answer is {"ok": RESULT} or
{"error": "TYPE: TEXT"}. Values travel as typed JSON (testdata/msglc/README.md of the repository), with one more form for
requests: {"$ndarray": [dtype, nested list]}.

Only documented names of the package are used.
"""

import datetime
import importlib.metadata
import json
import math
import struct
import sys

import msglc
from msglc.codec import CBORCodec, MsgspecCodec
from msglc.config import configure
from msglc.reader import LazyReader, to_obj

import msgpack
import cbor2

try:
    import numpy
except ImportError:
    numpy = None

CODECS = {"msgpack": MsgspecCodec, "cbor": CBORCodec}
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)


def untype(v):
    """Typed JSON to a Python value."""
    if isinstance(v, list):
        return [untype(x) for x in v]
    if not isinstance(v, dict):
        return v
    (form, arg), = v.items()
    if form == "$int":
        return int(arg)
    if form == "$f64":
        return struct.unpack(">d", bytes.fromhex(arg))[0]
    if form == "$bin":
        return bytes.fromhex(arg)
    if form == "$map":
        return {untype(k): untype(x) for k, x in arg}
    if form == "$time":
        return EPOCH + datetime.timedelta(seconds=arg[0], microseconds=arg[1] // 1000)
    if form == "$ext":
        return msgpack.ExtType(arg[0], bytes.fromhex(arg[1]))
    if form == "$ndarray":
        return numpy.array(untype(arg[1]), dtype=arg[0])
    raise ValueError("typed JSON form " + form)


def typed(v):
    """A Python value to typed JSON."""
    if v is None or v is True or v is False or isinstance(v, str):
        return v
    if isinstance(v, int):
        return v if -(2**53) < v < 2**53 else {"$int": str(v)}
    if isinstance(v, float):
        if math.isnan(v):
            return {"$f64": "7ff8000000000000"}
        return {"$f64": struct.pack(">d", v).hex()}
    if isinstance(v, (bytes, bytearray)):
        return {"$bin": bytes(v).hex()}
    if isinstance(v, datetime.datetime):
        d = v - EPOCH
        return {"$time": [d.days * 86400 + d.seconds, d.microseconds * 1000]}
    if isinstance(v, msgpack.Timestamp):
        return {"$time": [v.seconds, v.nanoseconds]}
    if isinstance(v, msgpack.ExtType):
        return {"$ext": [v.code, v.data.hex()]}
    if type(v).__name__ == "Ext":  # of msgspec
        return {"$ext": [v.code, bytes(v.data).hex()]}
    if isinstance(v, cbor2.CBORTag):
        return {"$tag": [v.tag, typed(v.value)]}
    if isinstance(v, (list, tuple)):
        return [typed(x) for x in v]
    if isinstance(v, dict):
        return {"$map": [[typed(k), typed(x)] for k, x in v.items()]}
    raise ValueError("no typed JSON for " + type(v).__name__)


def options(req):
    opts = {
        "small_obj_optimization_threshold": req.get("threshold", 8192),
        "trivial_size": req.get("trivial", 20),
        "numpy_fast_int_pack": req.get("int_pack", False),
        "magic": bytes.fromhex(req["magic"]) if "magic" in req else b"msglc-2024",
    }
    configure(**opts)


def about(req):
    return {"msglc": importlib.metadata.version("msglc"), "numpy": numpy is not None, "rust": has_rust()}


def has_rust():
    import os
    import tempfile

    with tempfile.TemporaryDirectory() as d:
        try:
            msglc.dump(os.path.join(d, "x.msg"), [1], backend="rust")
        except Exception:
            return False
    return True


def dump(req):
    """Writes a value in typed JSON, or what the json module makes of a text."""
    options(req)
    value = json.loads(req["json"]) if "json" in req else untype(req["value"])
    msglc.dump(req["path"], value, backend=req["backend"], packer=CODECS[req["codec"]])


def read(req):
    """The full values at some paths; each path is a string or a list of segments. The value None is the whole."""
    options(req)
    answers = []
    with LazyReader(req["path"], cached=req.get("cached", True)) as reader:
        for path in req["paths"]:
            if isinstance(path, list):
                path = [untype(s) for s in path]
            try:
                answers.append({"ok": typed(to_obj(reader.read(path)))})
            except Exception as e:
                answers.append({"error": describe(e)})
    return answers


def raw(req):
    """The bytes of the archive at a path, or of its payload."""
    options(req)
    with LazyReader(req["path"]) as reader:
        node = reader.read(req["of"]) if "of" in req else reader
        return (node.protocol_raw_data(False) if req["payload"] else node.raw_data(False)).hex()


def combine(req):
    options(req)
    parts = [msglc.FileInfo(p["path"], p.get("name")) for p in req["parts"]]
    run = msglc.append if req.get("append") else msglc.combine
    run(req["path"], parts, packer=CODECS[req["codec"]])


def describe(e):
    return type(e).__name__ + ": " + str(e)


OPS = {"about": about, "dump": dump, "read": read, "raw": raw, "combine": combine}

for line in sys.stdin:
    request = json.loads(line)
    try:
        answer = {"ok": OPS[request["op"]](request)}
    except Exception as e:
        answer = {"error": describe(e)}
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()
