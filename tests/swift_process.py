"""OpenStack Swift with its s3api, all four servers in one process; run by Swift's own environment, not ours.

    python tests/swift_process.py FOLDER PORT        # until it is ended; PORT to PORT + 3 on loopback

It keeps everything under FOLDER. There is no memcached: what it would remember is asked for each time.
"""

import sys
from pathlib import Path

import eventlet

eventlet.monkey_patch()

from eventlet import wsgi  # noqa: E402
from swift.common import utils  # noqa: E402
from swift.common.ring import RingBuilder  # noqa: E402
from swift.common.wsgi import loadapp  # noqa: E402

MIDDLEWARE = (
    "catch_errors gatekeeper listing_formats cache s3api tempauth copy slo dlo versioned_writes symlink"
)
SETTINGS = {
    "cache": "use = egg:swift#memcache\nmemcache_servers = 127.0.0.1:1",
    "s3api": "s3_acl = false\nlocation = us-east-1\ndns_compliant_bucket_names = true",
    "tempauth": "user_test_tester = testing .admin .reseller_admin",
    "versioned_writes": "allow_versioned_writes = true\nallow_object_versioning = true",
}


def write_configuration(root: Path, port: int) -> None:
    """Rings of one device each, and a file for each server."""
    for name in ("d/d1", "cache"):
        (root / name).mkdir(parents=True, exist_ok=True)
    (root / "swift.conf").write_text(
        "[swift-hash]\nswift_hash_path_suffix = t\nswift_hash_path_prefix = t\n"
        "[storage-policy:0]\nname = Policy-0\ndefault = yes\n"
    )
    general = f"[DEFAULT]\nswift_dir = {root}\nmount_check = false\ndisable_fallocate = true\n"
    general += f"fallocate_reserve = 0\ndevices = {root}/d\nlog_level = ERROR\n"
    for place, kind in enumerate(("account", "container", "object"), start=1):
        builder = RingBuilder(1, 1, 0)
        device = {
            "region": 1,
            "zone": 1,
            "ip": "127.0.0.1",
            "port": port + place,
            "device": "d1",
            "weight": 1,
        }
        builder.add_dev({**device, "replication_ip": "127.0.0.1", "replication_port": port + place})
        builder.rebalance()
        builder.get_ring().save(str(root / f"{kind}.ring.gz"))
        app = f"[pipeline:main]\npipeline = {kind}-server\n[app:{kind}-server]\nuse = egg:swift#{kind}\n"
        (root / f"{kind}.conf").write_text(f"{general}{app}recon_cache_path = {root}/cache\n")
    lines = [general, f"[pipeline:main]\npipeline = {MIDDLEWARE} proxy-server", "[app:proxy-server]"]
    lines += ["use = egg:swift#proxy\nallow_account_management = true\naccount_autocreate = true"]
    for name in MIDDLEWARE.split():
        use = "" if "use = " in SETTINGS.get(name, "") else f"use = egg:swift#{name}\n"
        lines.append(f"[filter:{name}]\n{use}{SETTINGS.get(name, '')}")
    (root / "proxy.conf").write_text("\n".join(lines) + "\n")


def main() -> None:
    root, port = Path(sys.argv[1]).resolve(), int(sys.argv[2])
    write_configuration(root, port)
    utils.SWIFT_CONF_FILE = str(root / "swift.conf")
    utils.validate_hash_conf()
    servers = []
    for place, kind in enumerate(("proxy", "account", "container", "object")):
        app = loadapp(str(root / f"{kind}.conf"), allow_modify_pipeline=False)
        socket = eventlet.listen(("127.0.0.1", port + place))
        log = (root / f"{kind}.log").open("w")
        servers.append(eventlet.spawn(wsgi.server, socket, app, log=log, custom_pool=eventlet.GreenPool(256)))
    for server in servers:
        server.wait()


if __name__ == "__main__":
    main()
