"""Opens documents with the original and times itself: a request a line on standard input, an answer a line on standard
output, both JSON. The clock runs inside, so that starting Python and importing are not counted."""

import importlib.metadata
import json
import platform
import sys
import time

from msglc.reader import LazyReader, LazyStats, to_obj


def about(request):
    names = ("msglc", "msgspec")
    return "Python " + platform.python_version() + ", " + ", ".join(
        n + " " + importlib.metadata.version(n) for n in names)


def open_deep(request):
    path, at = request["path"], request["at"]
    now = time.process_time if request["cpu"] else time.perf_counter
    seconds = []
    for _ in range(request["n"]):
        start = now()
        with LazyReader(path) as reader:
            value = to_obj(reader.read(at))
        seconds.append(now() - start)
    counter = LazyStats()
    with LazyReader(path, counter=counter) as reader:
        to_obj(reader.read(at))
    return {"seconds": seconds, "value": value, "bytes": counter() + 50}  # it does not count the prefix


def open_remote(request):
    """One value of an object in a bucket, through s3fs as it is by default. Nothing of the object is known before."""
    import s3fs
    fs = s3fs.S3FileSystem(anon=True, endpoint_url=request["endpoint"], client_kwargs={"region_name": "us-east-1"},
                           use_listings_cache=False)
    fs.invalidate_cache()
    with fs.open(request["path"], "rb") as file, LazyReader(file) as reader:
        return {"value": to_obj(reader.read(request["at"]))}


for line in sys.stdin:
    request = json.loads(line)
    print(json.dumps({"about": about, "open": open_deep, "remote": open_remote}[request["op"]](request)), flush=True)
